//! What each layer caught, what buyers were told, and whether it is true.

use std::collections::BTreeSet;

use crate::Failure;
use crate::hall::Booking;
use crate::shop::Outcome;

#[derive(Default)]
pub struct Tally {
    /// Those who were told that the seat is theirs.
    pub told: Vec<(i32, String)>,
    pub lock_refused: u32,
    pub token_refused: u32,
    pub constraint_refused: u32,
    /// Saw under the lock that the seat was sold.
    pub seen_sold: u32,
    /// Seats that nobody paid for in time, and that others could buy again.
    pub abandoned: u32,
    /// Paid late, and got the seat, since nobody else had asked for it.
    pub late_but_first: u32,
}

impl Tally {
    pub fn note(&mut self, seat: i32, buyer: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Booked => self.told.push((seat, buyer.to_owned())),
            Outcome::Busy => self.lock_refused += 1,
            Outcome::Sold => self.seen_sold += 1,
            Outcome::Refund(Booking::TokenRefused(_)) => self.token_refused += 1,
            Outcome::Refund(_) => self.constraint_refused += 1,
            Outcome::TimeUp(_) | Outcome::Later => {}
        }
    }

    pub fn add(&mut self, other: &Tally) {
        self.told.extend(other.told.iter().cloned());
        self.lock_refused += other.lock_refused;
        self.token_refused += other.token_refused;
        self.constraint_refused += other.constraint_refused;
        self.seen_sold += other.seen_sold;
        self.abandoned += other.abandoned;
        self.late_but_first += other.late_but_first;
    }
}

pub fn print(scenes: &Tally, crowd: &Tally) {
    let line = |what: &str, count: fn(&Tally) -> usize| {
        println!("  {what:<58}{:>7}{:>7}", count(scenes), count(crowd));
    };
    println!("\n  {:<58}{:>7}{:>7}", "", "scenes", "crowd");
    line("seats sold", |tally| tally.told.len());
    line("lock refused: somebody else was about to buy", |tally| {
        tally.lock_refused as usize
    });
    line("seen under the lock: sold", |tally| {
        tally.seen_sold as usize
    });
    line("token refused: paid too late, money back", |tally| {
        tally.token_refused as usize
    });
    line(
        "constraint refused: sold past lock and token, money back",
        |tally| tally.constraint_refused as usize,
    );
    line("paid late, and nobody else had come", |tally| {
        tally.late_but_first as usize
    });
    line("abandoned, and free again", |tally| {
        tally.abandoned as usize
    });
}

/// Holds what buyers were told against what the database says.
pub fn verify(all: &Tally, sold: &[(i32, String)], seats: i32) -> Result<(), Failure> {
    let mut told = all.told.clone();
    told.sort();
    let seats_told: BTreeSet<i32> = told.iter().map(|(seat, _)| *seat).collect();
    if seats_told.len() < told.len() {
        return Err(format!("a seat was sold twice: {told:?}").into());
    }
    if told != sold {
        return Err(format!("buyers were told {told:?}, and the database says {sold:?}").into());
    }
    if i32::try_from(sold.len())? != seats {
        return Err(format!("{} of {seats} seats are sold", sold.len()).into());
    }
    for (count, layer) in [
        (all.lock_refused, "lock"),
        (all.token_refused, "token"),
        (all.constraint_refused, "constraint"),
        (all.abandoned, "end of a lease"),
    ] {
        if count == 0 {
            return Err(format!("nothing was left for the {layer} to do").into());
        }
    }
    println!("\n{seats} seats, each sold once; every buyer was told the truth.");
    Ok(())
}
