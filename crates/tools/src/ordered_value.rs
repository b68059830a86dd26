//! JSON values that preserve the order of members, so that a service's data keeps its original order.

use std::fmt;
use std::ops::Index;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON value. Of members with the same name the last one counts, at the last position.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderedValue {
    /// Neither an array nor an object.
    Leaf(Value),
    /// An array.
    Array(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl OrderedValue {
    /// The value at a JSON pointer (RFC 6901).
    pub fn at_pointer(self, pointer: &str) -> Option<Self> {
        let Some(steps) = pointer.strip_prefix('/') else {
            return pointer.is_empty().then_some(self);
        };
        steps.split('/').try_fold(self, |part, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match part {
                Self::Object(members) => {
                    members.into_iter().find_map(|(name, value)| (name == step).then_some(value))
                }
                Self::Array(mut items) => {
                    let index: usize =
                        step.parse().ok().filter(|index: &usize| index.to_string() == step)?;
                    (index < items.len()).then(|| items.swap_remove(index))
                }
                Self::Leaf(_) => None,
            }
        })
    }

    /// The same value as an unordered one.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), value.to_value())).collect()
            }
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Leaf(value) => value.as_str(),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The members in order, if it is an object.
    pub fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Appends a member to an object and removes an earlier one with this name.
    pub fn insert(&mut self, name: &str, value: Self) {
        if let Self::Object(members) = self {
            members.retain(|(other, _)| other != name);
            members.push((name.to_owned(), value));
        }
    }
}

/// Represents an absent member.
static ABSENT: OrderedValue = OrderedValue::Leaf(Value::Null);

impl Index<&str> for OrderedValue {
    type Output = Self;

    /// The member with this name; null if there is none.
    fn index(&self, name: &str) -> &Self {
        self.members().iter().find(|(known, _)| known == name).map_or(&ABSENT, |(_, value)| value)
    }
}

impl PartialEq<bool> for OrderedValue {
    fn eq(&self, other: &bool) -> bool {
        matches!(self, Self::Leaf(Value::Bool(value)) if value == other)
    }
}

impl From<Value> for OrderedValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members.into_iter().map(|(name, value)| (name, value.into())).collect(),
            ),
            leaf => Self::Leaf(leaf),
        }
    }
}

impl fmt::Display for OrderedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for OrderedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(value) => value.serialize(serializer),
            Self::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| object.serialize_entry(name, value))?;
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for OrderedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedValueVisitor)
    }
}

/// Builds the value during deserialisation. The JSON reader bounds the depth.
struct OrderedValueVisitor;

impl<'de> Visitor<'de> for OrderedValueVisitor {
    type Value = OrderedValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<OrderedValue, E> {
        Ok(OrderedValue::Leaf(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OrderedValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(OrderedValue::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<OrderedValue, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(OrderedValue::Object(remove_duplicates(members)))
    }
}

/// Removes members that a later member of the same name replaces.
fn remove_duplicates(members: Vec<(String, OrderedValue)>) -> Vec<(String, OrderedValue)> {
    let mut indexes: Vec<usize> = (0..members.len()).collect();
    // The sort is stable, so that members of the same name keep their order.
    indexes.sort_by(|one, other| members[*one].0.cmp(&members[*other].0));
    let is_repeated = |pair: &[usize]| members[pair[0]].0 == members[pair[1]].0;
    let mut gone: Vec<usize> =
        indexes.windows(2).filter(|pair| is_repeated(pair)).map(|pair| pair[0]).collect();
    if gone.is_empty() {
        return members;
    }
    gone.sort_unstable();
    let is_kept = |index: usize| gone.binary_search(&index).is_err();
    let kept = members.into_iter().enumerate().filter(|(index, _)| is_kept(*index));
    kept.map(|(_, member)| member).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> OrderedValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn members_keep_their_order() {
        let text =
            r#"{"z":[1,-2,3.5,18446744073709551615,null,true,"ä\n"],"a":{"y":{},"b":[]},"m":""}"#;
        assert_eq!(read(text).to_string(), text);
        assert_eq!(read(text).to_value(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(read(" [ 1 ,\n 2 ] ").to_string(), "[1,2]");
        assert!(serde_json::from_str::<OrderedValue>(&"[".repeat(1000)).is_err());
    }

    #[test]
    fn of_members_with_one_name_the_last_counts() {
        assert_eq!(
            read(r#"{"b":1,"a":2,"b":3,"c":4,"b":5}"#).to_string(),
            r#"{"a":2,"c":4,"b":5}"#
        );
        let many: String =
            (0..100_000).map(|number| format!("\"{}\":0,", number % 50_000)).collect();
        let OrderedValue::Object(members) = read(&format!("{{{}}}", many.trim_end_matches(',')))
        else {
            panic!("it is an object");
        };
        assert_eq!(members.len(), 50_000);
    }

    #[test]
    fn a_pointer_names_a_part() {
        let data = read(r#"{"z":[{"b":1,"a":2}],"a/b":{"m~n":3}}"#);
        for (pointer, part) in [("/z/0", r#"{"b":1,"a":2}"#), ("/a~1b/m~0n", "3"), ("/z/0/a", "2")]
        {
            assert_eq!(data.clone().at_pointer(pointer).unwrap().to_string(), part);
        }
        assert_eq!(data.clone().at_pointer(""), Some(data.clone()));
        for pointer in ["z", "/z/1", "/z/00", "/z/-", "/z/+0", "/q", "/z/0/a/b"] {
            assert_eq!(data.clone().at_pointer(pointer), None, "{pointer}");
        }
    }

    #[test]
    fn a_member_is_put_at_the_end() {
        let mut data = read(r#"{"z":1,"a":2}"#);
        data.insert("z", json!(3).into());
        assert_eq!(data.to_string(), r#"{"a":2,"z":3}"#);
    }
}
