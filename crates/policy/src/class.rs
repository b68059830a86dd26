//! Classes of callers: those that rules cannot tell apart share their verdicts and lists.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use creole::Principal;
use creole::internal::chain::ViewerClass;
use creole::internal::sync::RwLock;
use creole_gateway::layers::newest_json;
use creole_proto::model::{Definition, ListKind};
use creole_proto::wire::Object;
use serde_json::{Map, Value};

use crate::cel::Moment;
use crate::decision::Verdict;
use crate::policy::{Policy, Request};
use crate::subject::Subject;
use crate::target::TargetKind;

/// The maximum number of classes, and of principals whose class is remembered. Beyond it, all are forgotten.
const MAX_CLASSES: usize = 4096;
/// The maximum number of remembered verdicts of all classes. Beyond it, all are forgotten.
const MAX_VERDICTS: usize = 200_000;
/// The verdict about a longer name is not remembered.
const MAX_NAME: usize = 512;

/// A policy with what it remembers of its callers.
#[derive(Debug)]
pub(crate) struct PolicyCore {
    pub(crate) policy: Policy,
    pub(crate) server: Box<str>,
    /// The annotations of tools by name, if a rule reads them.
    annotations: RwLock<HashMap<String, Arc<Value>>>,
    reads_annotations: bool,
    pub(crate) denies_input_requests: bool,
    table: RwLock<ClassTable>,
    verdicts: AtomicUsize,
}

#[derive(Debug, Default)]
struct ClassTable {
    by_principal: HashMap<PrincipalKey, Arc<KnownCaller>>,
    by_key: HashMap<ClassKey, Arc<Class>>,
}

/// A principal as the key of a map. The hash of its id is enough, because few principals have the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PrincipalKey(Principal);

impl Hash for PrincipalKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

/// A caller with its class.
#[derive(Debug)]
pub(crate) struct KnownCaller {
    pub(crate) subject: Arc<Subject>,
    pub(crate) class: Arc<Class>,
}

/// What rules can see of a principal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ClassKey {
    /// For each rule whether its members about the caller match, and whether the caller lacks scopes of it.
    rules: Vec<(bool, bool)>,
    /// What the expressions read that do not vary by call.
    values: String,
}

/// Callers that rules cannot tell apart.
pub(crate) struct Class {
    id: u64,
    core: std::sync::Weak<PolicyCore>,
    /// For each rule whether its members about the caller match.
    pub(crate) applies: Box<[bool]>,
    subject: Arc<Subject>,
    /// The verdicts by method and name.
    verdicts: RwLock<Vec<(&'static str, NameVerdicts)>>,
}

type NameVerdicts = HashMap<Box<str>, Verdict>;

impl std::fmt::Debug for Class {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Class").field("id", &self.id).finish_non_exhaustive()
    }
}

impl PolicyCore {
    pub(crate) fn new(policy: Policy, server: &str) -> Self {
        Self {
            reads_annotations: policy.reads_annotations(),
            denies_input_requests: policy.denies_input_requests(),
            policy,
            server: server.into(),
            annotations: RwLock::default(),
            table: RwLock::default(),
            verdicts: AtomicUsize::new(0),
        }
    }

    /// The caller with its class.
    pub(crate) fn known_caller(self: &Arc<Self>, principal: &Principal) -> Arc<KnownCaller> {
        let key = PrincipalKey(principal.clone());
        if let Some(known) = self.table.read().by_principal.get(&key) {
            return Arc::clone(known);
        }
        let subject = Arc::new(Subject::from(principal));
        let class_key = self.class_key(&subject);
        let mut table = self.table.write();
        if table.by_key.len() >= MAX_CLASSES {
            *table = ClassTable::default();
        }
        if table.by_principal.len() >= MAX_CLASSES {
            table.by_principal.clear();
        }
        let class = match table.by_key.get(&class_key) {
            Some(class) => Arc::clone(class),
            None => {
                let class = Arc::new(self.new_class(&class_key, &subject));
                table.by_key.insert(class_key, Arc::clone(&class));
                class
            }
        };
        let known = Arc::new(KnownCaller { subject, class });
        table.by_principal.insert(key, Arc::clone(&known));
        known
    }

    fn class_key(&self, subject: &Subject) -> ClassKey {
        let rules = self.policy.rules.iter().map(|rule| {
            let applies = rule.caller_mismatch(subject, &self.server).is_none();
            (applies, !rule.missing_scopes(subject).is_empty())
        });
        let mut values = Map::new();
        for rule in self.policy.rules.iter().filter(|rule| !rule.varies_by_call()) {
            let Some(references) = rule.when.as_ref().map(|when| when.references()) else {
                continue;
            };
            for member in references.principal_members() {
                values.insert(member.to_owned(), subject.member(member));
            }
            for claim in &references.claims {
                let value = subject.claims.get(claim).cloned();
                values.insert(format!("claims {claim}"), value.unwrap_or(Value::Null));
                let is_there = subject.claims.contains_key(claim);
                values.insert(format!("has claims {claim}"), is_there.into());
            }
        }
        ClassKey { rules: rules.collect(), values: Value::Object(values).to_string() }
    }

    fn new_class(self: &Arc<Self>, key: &ClassKey, subject: &Arc<Subject>) -> Class {
        static CLASSES: AtomicU64 = AtomicU64::new(1);
        Class {
            id: CLASSES.fetch_add(1, Ordering::Relaxed),
            core: Arc::downgrade(self),
            applies: key.rules.iter().map(|(applies, _)| *applies).collect(),
            subject: Arc::clone(subject),
            verdicts: RwLock::default(),
        }
    }

    /// Forgets all classes, so that lists and verdicts are made again.
    fn forget_classes(&self) {
        *self.table.write() = ClassTable::default();
        self.verdicts.store(0, Ordering::Relaxed);
    }

    /// The annotations of a tool, if a rule reads them.
    pub(crate) fn annotations(&self, tool: &str) -> Option<Arc<Value>> {
        match self.reads_annotations {
            true => self.annotations.read().get(tool).cloned(),
            false => None,
        }
    }

    /// Records the annotations of a tool, if a rule reads them.
    pub(crate) fn record_definition(&self, kind: ListKind, item: &Definition) {
        if !self.reads_annotations || kind != ListKind::Tools {
            return;
        }
        let object: Option<Value> = serde_json::from_str(newest_json(item)).ok();
        let annotations = object.and_then(|mut object| Some(object.get_mut("annotations")?.take()));
        let annotations = annotations.unwrap_or_else(|| Value::Object(Map::new()));
        let mut known = self.annotations.write();
        if known.get(item.name()).is_some_and(|before| **before == annotations) {
            return;
        }
        known.insert(item.name().to_owned(), Arc::new(annotations));
        drop(known);
        self.forget_classes();
    }
}

impl Class {
    /// What is known of an item before a call.
    pub(crate) fn verdict(
        &self,
        core: &PolicyCore,
        method: &'static str,
        kind: TargetKind,
        name: &str,
    ) -> Verdict {
        {
            let known = self.verdicts.read();
            let of_method = known.iter().find(|(known, _)| *known == method);
            if let Some(verdict) = of_method.and_then(|(_, names)| names.get(name)) {
                return verdict.clone();
            }
        }
        let annotations = core.annotations(name);
        let request = Request {
            server: &core.server,
            method,
            item: Some((kind, name)),
            annotations: annotations.as_deref(),
            arguments: None,
            now: Moment::EPOCH,
        };
        let verdict = core.policy.known_verdict(&self.applies, &self.subject, &request);
        if name.len() <= MAX_NAME {
            self.remember(core, method, name, &verdict);
        }
        verdict
    }

    fn remember(&self, core: &PolicyCore, method: &'static str, name: &str, verdict: &Verdict) {
        if core.verdicts.fetch_add(1, Ordering::Relaxed) >= MAX_VERDICTS {
            return core.forget_classes();
        }
        let mut known = self.verdicts.write();
        let position = known.iter().position(|(known, _)| *known == method);
        let position = position.unwrap_or_else(|| {
            known.push((method, NameVerdicts::new()));
            known.len() - 1
        });
        known[position].1.insert(name.into(), verdict.clone());
    }

    fn is_shown(&self, method: &'static str, kind: TargetKind, name: &str) -> bool {
        // A policy that was replaced shows nothing more.
        let Some(core) = self.core.upgrade() else { return false };
        !matches!(self.verdict(&core, method, kind, name), Verdict::No(_))
    }
}

impl ViewerClass for Class {
    fn id(&self) -> u64 {
        self.id
    }

    fn rules_digest(&self) -> u64 {
        self.core.upgrade().map_or(0, |core| core.policy.digest)
    }

    fn sees(&self, kind: ListKind, item: &Definition) -> bool {
        match kind {
            ListKind::Tools => self.is_shown("tools/call", TargetKind::Tool, item.name()),
            ListKind::Prompts => self.is_shown("prompts/get", TargetKind::Prompt, item.name()),
            ListKind::Resources | ListKind::Skills => {
                self.is_shown("resources/read", TargetKind::Resource, item.name())
            }
            ListKind::Templates => {
                let object = Object::new(newest_json(item));
                let template = object.and_then(|object| object.string("uriTemplate").ok()?);
                let template = template.unwrap_or_default();
                self.is_shown("resources/read", TargetKind::Resource, &template)
            }
        }
    }

    fn sees_resource(&self, uri: &str) -> bool {
        self.is_shown("resources/read", TargetKind::Resource, uri)
    }

    fn sees_task(&self, method: &'static str, tool: &str) -> bool {
        self.is_shown(method, TargetKind::Task, tool)
    }
}
