//! The validator for all other schemas: the `jsonschema` crate within bounds.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::bounds::SchemaMeasures;
use super::flat::FlatSchema;
use super::value_size::ValueSize;
use super::{MAX_VIOLATIONS, SchemaDraft, SchemaError, Violation, message};

/// A compiled schema.
pub(super) struct FullSchema {
    validator: Validator,
    shape: SchemaMeasures,
    /// Explains violations that the validator would take too long to explain.
    sketch: FlatSchema,
}

impl FullSchema {
    pub(super) fn compile(
        schema: &Value,
        dialect: SchemaDraft,
        shape: SchemaMeasures,
    ) -> Result<Self, SchemaError> {
        let draft = match dialect {
            SchemaDraft::Draft7 => Draft::Draft7,
            SchemaDraft::Draft202012 => Draft::Draft202012,
        };
        let options = jsonschema::options()
            .offline()
            .with_draft(draft)
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN_BYTES)
                    .dfa_size_limit(MAX_PATTERN_BYTES),
            );
        match catch_unwind(AssertUnwindSafe(|| options.build(schema))) {
            Ok(Ok(validator)) => Ok(Self { validator, shape, sketch: FlatSchema::sketch(schema) }),
            Ok(Err(error)) => Err(SchemaError::Invalid(truncated_reason(&error))),
            Err(panic) => Err(panic_error(panic.as_ref())),
        }
    }

    pub(super) fn validate(
        &self,
        instance: &Value,
        extent: ValueSize,
    ) -> Result<(), Vec<Violation>> {
        let frames = u64::from(extent.depth).saturating_mul(self.shape.in_place);
        if self.shape.returns > 0 && frames > MAX_FRAMES {
            return Err(vec![Violation::new("", "must be nested less deeply to be checked")]);
        }
        self.check_instance(instance, extent)
    }

    fn check_instance(&self, instance: &Value, extent: ValueSize) -> Result<(), Vec<Violation>> {
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            if self.validator.is_valid(instance) {
                return Ok(());
            }
            if !self.can_explain(extent) {
                self.sketch.validate(instance)?;
                return Err(vec![Violation::new("", "must match the schema")]);
            }
            let errors = self.validator.iter_errors(instance).take(MAX_VIOLATIONS);
            Err(errors.map(|error| violation(&error)).collect())
        }));
        verdict.unwrap_or_else(|panic| {
            Err(vec![Violation::broken_schema(&panic_error(panic.as_ref()))])
        })
    }

    /// The crate caches verdicts but not explanations, and copies the value for each branch of an `anyOf`: an
    /// explanation takes exponential time and memory where a verdict does not.
    fn can_explain(&self, extent: ValueSize) -> bool {
        let rounds = match self.shape.returns {
            0 => 1,
            returns => returns.saturating_pow(extent.depth),
        };
        let work = extent.weight.saturating_mul(self.shape.weight).saturating_mul(rounds);
        work <= MAX_EXPLAINED
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation::new(error.instance_path().as_str(), error_message(error))
}

fn error_message(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(name) } => {
            message::wrong_type([name.as_str()].into_iter(), error.instance())
        }
        Kind::Type { kind: TypeKind::Multiple(names) } => {
            message::wrong_type(names.iter().map(|name| name.as_str()), error.instance())
        }
        Kind::Enum { options } => message::not_an_option(options.as_array().map_or(&[], |o| o)),
        Kind::Constant { expected_value } => {
            format!("must be {}", message::truncate(&expected_value.to_string()))
        }
        Kind::Required { property } => {
            message::missing_property(property.as_str().unwrap_or_default())
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            message::unexpected_properties(unexpected.iter().map(String::as_str))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => message::too_few(*limit, message::CHARACTERS),
        Kind::MaxLength { limit } => message::too_many(*limit, message::CHARACTERS),
        Kind::MinItems { limit } => message::too_few(*limit, message::ITEMS),
        Kind::MaxItems { limit } => message::too_many(*limit, message::ITEMS),
        Kind::MinProperties { limit } => message::too_few(*limit, message::PROPERTIES),
        Kind::MaxProperties { limit } => message::too_many(*limit, message::PROPERTIES),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Pattern { pattern } => {
            format!("must match the pattern `{}`", message::truncate(pattern))
        }
        Kind::AnyOf { .. } => "must match at least one of the allowed forms".to_owned(),
        Kind::OneOfNotValid { .. } => "must match one of the allowed forms".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "must match only one of the allowed forms, but matches several".to_owned()
        }
        Kind::FalseSchema => "must not be present".to_owned(),
        other => format!("must satisfy `{}` of the schema", message::truncate(other.keyword())),
    }
}

/// The crate's own text, truncated because it quotes the schema.
fn truncated_reason(error: &ValidationError<'_>) -> String {
    let (location, reason) = (error.instance_path().as_str(), error.to_string());
    format!("at `#{}`, {}", message::truncate(location), message::truncate_to(200, &reason))
}

fn panic_error(panic: &(dyn Any + Send)) -> SchemaError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    SchemaError::Invalid(format!("the validator crashed: {}", message::truncate(text)))
}

/// Maximum size of a compiled pattern, which also bounds the time to compile it.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Values times subschemas, at some hundred nanoseconds and bytes each.
const MAX_EXPLAINED: u64 = 200_000;

/// Maximum number of nested active subschemas: in a debug build each takes up to 600 bytes of a worker's stack of 2
/// MiB.
const MAX_FRAMES: u64 = 1_500;
