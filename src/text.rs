//! Texts for tables that people read, which have a width.

/// The beginning of a text, of `most` letters at the most.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}

/// The end of a name, of `most` letters at the most: hosts differ at the end.
pub(crate) fn tail(name: &str, most: usize) -> String {
    let long = name.chars().count();
    match long > most {
        true => ['…']
            .into_iter()
            .chain(name.chars().skip(long + 1 - most))
            .collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_the_rest_says_that_it_was_cut() {
        assert_eq!(
            (cut("é234", 4), tail("é234", 4)),
            ("é234".into(), "é234".into())
        );
        assert_eq!(
            (cut("é2345", 4), tail("é2345", 4)),
            ("é23…".into(), "…345".into())
        );
    }
}
