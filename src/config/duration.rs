//! Durations as people write them, one parser for files, the environment and flags.

use std::time::Duration;

use super::error::Unfit;
use crate::quorum::Timing;

/// Which durations a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// Above zero.
    Positive,
    /// Zero too.
    OrZero,
    /// Above zero and a whole number of milliseconds, since it is stored on the nodes.
    Stored,
}

/// The longest duration of any setting.
const LONGEST: Duration = Timing::LONGEST_TTL;

/// Texts and numbers beyond these could overflow inside the parser, and mean nothing anyway.
const LONGEST_TEXT: usize = 64;
const MOST_DIGITS: usize = 12;

const REMEDY: &str = "write a number and a unit, like \"1500ms\", \"30s\", \"5m\" or \"2h\"";

/// Reads a duration such as `1500ms`, `30s` or `1m 30s`.
///
/// # Errors
/// Anything without a unit, negative, zero where that makes no sense, finer than a millisecond,
/// or over ten years.
pub(crate) fn parse(text: &str, span: Span) -> Result<Duration, Unfit> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Unfit::new("is empty", REMEDY));
    }
    if text.starts_with('-') {
        return Err(Unfit::new("a duration cannot be negative", REMEDY));
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(Unfit::new(
            "a duration needs a unit",
            format!("write \"{text}s\" or \"{text}ms\""),
        ));
    }
    let runs = text.split(|c: char| !c.is_ascii_digit());
    if text.len() > LONGEST_TEXT || runs.map(str::len).max() > Some(MOST_DIGITS) {
        return Err(beyond(text));
    }
    // humantime takes a capital M for months.
    if text
        .split(|c: char| !c.is_alphabetic())
        .any(|unit| unit == "M")
    {
        return Err(Unfit::new("M would be months", "write \"m\" for minutes"));
    }
    let duration = humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => beyond(text),
        _ => Unfit::new("is no duration", REMEDY),
    })?;
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(finer());
    }
    check(duration, span)?;
    Ok(duration)
}

/// Checks a duration that was given as one.
///
/// # Errors
/// As for [`parse`]; parts of a millisecond are an error only where the nodes store the duration.
pub(crate) fn check(duration: Duration, span: Span) -> Result<(), Unfit> {
    if duration.is_zero() && span != Span::OrZero {
        return Err(Unfit::new("must be longer than zero", REMEDY));
    }
    if duration > LONGEST {
        return Err(too_long());
    }
    if span == Span::Stored && !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(finer());
    }
    Ok(())
}

/// The shortest exact text of a duration: `90s`, `1500ms`, `250us`, `7ns`.
pub(crate) fn show(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanos.is_multiple_of(unit) {
            return format!("{}{name}", nanos / unit);
        }
    }
    format!("{nanos}ns")
}

/// For numbers that do not fit the parser: too many digits before the point, or behind it.
fn beyond(text: &str) -> Unfit {
    match text.contains('.') {
        true => Unfit::new("is too long, or finer than a millisecond", REMEDY),
        false => too_long(),
    }
}

fn too_long() -> Unfit {
    Unfit::new("is longer than ten years", REMEDY)
}

fn finer() -> Unfit {
    Unfit::new("is finer than a millisecond", "write whole milliseconds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(text: &str) -> String {
        parse(text, Span::Positive).unwrap_err().problem
    }

    #[test]
    fn what_people_write_is_read() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("30s", ms(30_000)),
            ("1500ms", ms(1500)),
            ("1.5s", ms(1500)),
            ("1m 30s", ms(90_000)),
            ("2h", ms(7_200_000)),
            (" 1 day ", ms(86_400_000)),
            ("2000us", ms(2)),
        ] {
            assert_eq!(parse(text, Span::Positive), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_number_needs_a_unit() {
        let unfit = parse("30", Span::Positive).unwrap_err();
        assert_eq!(unfit.problem, "a duration needs a unit");
        assert_eq!(unfit.remedy, "write \"30s\" or \"30ms\"");
        assert_eq!(problem("0"), "a duration needs a unit");
        assert_eq!(problem("1.5"), "a duration needs a unit");
        assert_eq!(
            parse("0", Span::OrZero).unwrap_err().problem,
            "a duration needs a unit"
        );
    }

    #[test]
    fn each_bad_form_is_named() {
        for (text, expected) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("-1s", "a duration cannot be negative"),
            ("0s", "must be longer than zero"),
            ("0ms", "must be longer than zero"),
            ("0.4ms", "is finer than a millisecond"),
            ("1500.5ms", "is finer than a millisecond"),
            ("400us", "is finer than a millisecond"),
            (
                "0.1234567890123s",
                "is too long, or finer than a millisecond",
            ),
            ("0.5ns", "is too long, or finer than a millisecond"),
            ("1e30s", "is no duration"),
            ("1h30", "is no duration"),
            ("soon", "is no duration"),
            ("5 parsecs", "is no duration"),
            ("NaN", "is no duration"),
            ("10M", "M would be months"),
            ("11years", "is longer than ten years"),
            ("99999999999999999999s", "is longer than ten years"),
            (
                "18446744073709551615s 1000000000ns",
                "is longer than ten years",
            ),
        ] {
            assert_eq!(problem(text), expected, "{text}");
        }
    }

    #[test]
    fn zero_is_fine_only_where_it_means_something() {
        assert_eq!(parse("0s", Span::OrZero), Ok(Duration::ZERO));
        assert_eq!(parse("0ms", Span::OrZero), Ok(Duration::ZERO));
        assert!(parse("0s", Span::Stored).is_err());
    }

    #[test]
    fn what_the_nodes_store_is_whole_milliseconds() {
        let odd = Duration::from_micros(1500);
        assert!(check(odd, Span::Positive).is_ok());
        assert!(check(odd, Span::Stored).is_err());
        assert!(check(Duration::MAX, Span::OrZero).is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(text in ".*") {
            let _ = parse(&text, Span::OrZero);
        }

        #[test]
        fn nothing_near_a_duration_makes_it_panic(text in "([0-9]{0,25}(\\.[0-9]{0,25})? ?(ns|us|ms|s|m|h|d|w|months|y|M|µs|)? ?){0,5}") {
            if let Ok(duration) = parse(&text, Span::OrZero) {
                prop_assert!(duration <= LONGEST);
            }
        }

        #[test]
        fn what_is_shown_reads_back(millis in 0..=LONGEST.as_millis() as u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&show(duration), Span::OrZero), Ok(duration));
        }
    }
}
