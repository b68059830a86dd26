//! A file in a multipart form (RFC 7578).

use std::hash::{BuildHasher, RandomState};

/// A file to upload to the site.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FormFile {
    /// Its name, without quotes and control characters.
    pub(crate) name: String,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Additional form fields.
    pub(crate) fields: Vec<(&'static str, &'static str)>,
}

impl FormFile {
    /// The media type and the body of the form.
    pub(crate) fn to_multipart(&self) -> (String, Vec<u8>) {
        let boundary = self.boundary();
        let mut form = Vec::with_capacity(self.bytes.len() + 512);
        for (name, value) in &self.fields {
            let part = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            form.extend_from_slice(part.as_bytes());
        }
        let (name, media_type) = (&self.name, self.media_type);
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: {media_type}\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(&self.bytes);
        form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        (format!("multipart/form-data; boundary={boundary}"), form)
    }

    /// A boundary that the file cannot contain, because it is unpredictable.
    fn boundary(&self) -> String {
        let half = || RandomState::new().hash_one(&self.bytes);
        format!("creole-{:016x}{:016x}", half(), half())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_its_fields_and_its_file_between_unpredictable_boundaries() {
        let fields = vec![("action", "x")];
        let bytes = b"a\r\nb".to_vec();
        let file = FormFile { name: "a.png".to_owned(), media_type: "image/png", bytes, fields };
        let (media_type, form) = file.to_multipart();
        let boundary = media_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nx\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\
             Content-Type: image/png\r\n\r\na\r\nb\r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8(form).unwrap(), expected);
        assert_ne!(file.to_multipart().0, media_type);
    }
}
