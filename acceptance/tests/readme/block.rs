//! The fenced blocks of a document.

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// The number of its first line.
    pub(crate) line: usize,
    /// Its info string.
    pub(crate) mark: String,
    pub(crate) text: String,
    /// Whether only empty lines separate it from the block before.
    pub(crate) follows: bool,
}

/// The blocks of a document.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut open, mut follows) = (false, false);
    for (index, line) in document.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(mark), false) => {
                let mark = mark.trim().to_owned();
                blocks.push(Block { line: index + 2, mark, text: String::new(), follows });
                open = true;
            }
            (Some(_), true) => (open, follows) = (false, true),
            (None, true) => {
                let text = &mut blocks.last_mut().expect("an open block").text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => follows = follows && line.trim().is_empty(),
        }
    }
    blocks
}

#[test]
fn a_block_is_recognised_by_its_mark_and_its_context() {
    let document = "```sh\na\n```\n\n```text\nb\n```\nprose\n```json\n{}\n```\n";
    let found: Vec<_> = blocks(document)
        .into_iter()
        .map(|block| (block.line, block.mark, block.text, block.follows))
        .collect();
    let block =
        |line, mark: &str, text: &str, follows| (line, mark.to_owned(), text.to_owned(), follows);
    assert_eq!(
        found,
        [
            block(2, "sh", "a\n", false),
            block(6, "text", "b\n", true),
            block(10, "json", "{}\n", false)
        ]
    );
}
