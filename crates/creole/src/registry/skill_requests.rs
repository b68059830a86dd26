//! Requests for skills and directories.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Page, Payload};

use super::Registry;
use super::endpoint::unknown_resource_fault;
use crate::call::Context;
use crate::seal::cursor::Position;

/// Maximum length of a URI's part that an error repeats, in characters.
const MAX_ECHOED_URI: usize = 256;

impl Registry {
    /// The entry of one skill. Any other URI is an invalid parameter (SEP-2640, getting a skill).
    pub(super) fn skill(&self, uri: &str) -> Result<Payload, Fault> {
        self.check_offered(ListKind::Skills, "skills/get")?;
        match self.read().skill_index.skills.get(uri) {
            Some(skill) => {
                Ok(Payload::Skill(Arc::clone(skill.definition()), self.shared.settings.cache))
            }
            None => {
                let uri: String = uri.chars().take(MAX_ECHOED_URI).collect();
                Err(Fault::new(FaultKind::InvalidParams, format!("no skill is served at {uri}")))
            }
        }
    }

    /// One page of the direct children of a directory. Any other URI is an invalid parameter, whether it exists or not
    /// (SEP-2640, reading directories).
    pub(super) fn directory(
        &self,
        uri: &str,
        cursor: Option<String>,
        context: &Context,
    ) -> Result<Page, Fault> {
        self.check_offered(ListKind::Skills, "resources/directory/read")?;
        let listed = self.read().skill_index.directory(uri);
        let Some(items) = listed else {
            if self.find_reader(uri).is_none() {
                return Err(unknown_resource_fault(uri));
            }
            let uri: String = uri.chars().take(MAX_ECHOED_URI).collect();
            return Err(Fault::new(FaultKind::InvalidParams, format!("{uri} is not a directory")));
        };
        let class = self.viewer_class(context.principal());
        let is_seen = |item: &Arc<Definition>| {
            class.as_ref().is_none_or(|class| class.sees(ListKind::Resources, item))
        };
        let items: Vec<_> = items.into_iter().filter(is_seen).collect();
        let settings = &self.shared.settings;
        let size = if settings.dialect.paging { settings.page_size } else { usize::MAX };
        // A cursor is bound to its directory.
        let list = format!("directory {uri}");
        let start = self.position(cursor, context, &list)?.map_or(0, |position| {
            let last = items.iter().position(|item| item.name() == position.after);
            last.map_or(position.index.saturating_sub(1), |last| last + 1).min(items.len())
        });
        let end = items.len().min(start.saturating_add(size));
        let next = items[start..end].last().filter(|_| end < items.len()).map(|last| {
            let position = Position { index: end, after: last.name().to_owned() };
            position.seal(&settings.sealer, context.principal().binding(), &list)
        });
        let items = items[start..end].iter().cloned().collect();
        let (kind, excluded) = (ListKind::Resources, Box::default());
        Ok(Page { kind, items, excluded, next, cache: settings.cache })
    }
}
