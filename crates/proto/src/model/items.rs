//! The items of one page of a list, shared between the callers that get the same page.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Definition;
use super::definition::TextVariant;
use crate::revision::Rules;
use crate::wire::one_line;

/// The items of a page. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Items {
    definitions: Arc<[Arc<Definition>]>,
    joined_text: Option<JoinedText>,
}

/// All items as one text, in one of their variants.
#[derive(Clone, Debug)]
struct JoinedText {
    wording: TextVariant,
    text: Arc<str>,
}

impl Items {
    /// Joins the items into one text without line ends for peers with these rules. Writing them is then one copy. This
    /// pays off for a page that is sent more than once.
    pub fn with_joined_text(mut self, rules: &Rules) -> Self {
        let mut text = String::with_capacity(self.size(rules));
        for item in self.iter() {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(item.text(rules));
        }
        self.joined_text = Some(JoinedText {
            wording: TextVariant::for_rules(rules),
            text: one_line(&text).into(),
        });
        self
    }

    /// Whether [`with_joined_text`](Self::with_joined_text) was called with rules that select the same texts as these.
    pub fn is_joined_for(&self, rules: &Rules) -> bool {
        self.text(rules).is_some()
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.iter()
    }

    /// Writes the items, separated by commas.
    pub(crate) fn write(&self, out: &mut Vec<u8>, rules: &Rules) {
        if let Some(text) = self.text(rules) {
            return out.extend_from_slice(text.as_bytes());
        }
        for (position, item) in self.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            out.extend_from_slice(item.text(rules).as_bytes());
        }
    }

    /// The size of the output of [`write`](Self::write).
    pub(crate) fn size(&self, rules: &Rules) -> usize {
        match self.text(rules) {
            Some(text) => text.len(),
            None => self.iter().map(|item| item.text(rules).len() + 1).sum(),
        }
    }

    fn text(&self, rules: &Rules) -> Option<&str> {
        let joined = self.joined_text.as_ref()?;
        (joined.wording == TextVariant::for_rules(rules)).then_some(&*joined.text)
    }
}

impl PartialEq for Items {
    /// The joined text does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.definitions == other.definitions
    }
}

impl FromIterator<Arc<Definition>> for Items {
    fn from_iter<T: IntoIterator<Item = Arc<Definition>>>(items: T) -> Self {
        Self { definitions: items.into_iter().collect(), joined_text: None }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::model::{TaskSupport, Tool};
    use crate::revision::Revision;
    use crate::wire::Raw;

    /// Tools whose text differs between revisions.
    fn items() -> Items {
        let tool = |name: &str, task_support| Tool {
            name: name.into(),
            title: None,
            description: "d".into(),
            input_schema: Raw::from_value(&()),
            output_schema: Some(Raw::from_value(&[1])),
            annotations: None,
            task_support,
            meta: None,
        };
        let tools = [tool("a", TaskSupport::Forbidden), tool("b", TaskSupport::Optional)];
        tools.iter().map(|tool| Arc::new(Definition::from(tool))).collect()
    }

    #[test]
    fn joined_items_are_written_like_single_ones_for_every_revision() {
        let newest = Revision::ALL.last().unwrap().rules();
        let joined = items().with_joined_text(newest);
        for revision in Revision::ALL {
            let (mut one_by_one, mut at_once) = (vec![], vec![]);
            items().write(&mut one_by_one, revision.rules());
            joined.write(&mut at_once, revision.rules());
            assert_eq!(one_by_one, at_once);
            assert!(joined.size(revision.rules()) >= at_once.len());
        }
        assert!(joined.is_joined_for(newest) && !items().is_joined_for(newest));
    }
}
