//! Many buyers at once, who pay in time, late or never, and a box office that sells past them all.

use std::pin::pin;
use std::time::Duration;

use futures::future::{join_all, pending};
use quorumlock::Client;
use rand::RngExt;
use tokio::time::sleep;

use crate::Failure;
use crate::hall::{Booking, Theatre};
use crate::shop::{LEASE, Outcome, Shop};
use crate::tally::Tally;

/// The seats that the crowd wants.
pub const SEATS: i32 = 24;

/// How many people stand in line at the same time, each on a connection of its own.
const LINES: usize = 12;

/// How many seats the box office sells.
const BY_HAND: usize = 3;

/// How somebody pays.
enum Payment {
    After(Duration),
    Never,
}

impl Payment {
    /// Two of three in time, and of the others every second one never.
    fn by_chance() -> Payment {
        let mut chance = rand::rng();
        let late = LEASE + Duration::from_millis(chance.random_range(20..LEASE.as_millis() as u64));
        match chance.random_range(0..6) {
            0..4 => Payment::After(Duration::from_millis(chance.random_range(5..80))),
            4 => Payment::After(late),
            _ => Payment::Never,
        }
    }

    async fn arrive(self) {
        match self {
            Payment::After(time) => sleep(time).await,
            Payment::Never => pending().await,
        }
    }
}

/// Sells all the crowd's seats, and tells how that went.
pub async fn come(theatre: &Theatre, client: &Client) -> Result<Tally, Failure> {
    println!("Then the doors open: {LINES} lines of buyers for {SEATS} seats.");
    let mut lines = Vec::new();
    for line in 0..LINES {
        let shop = Shop {
            locks: client.clone(),
            hall: theatre.hall().await?,
            lease: LEASE,
        };
        lines.push(tokio::spawn(stand_in_line(shop, line)));
    }
    let mut all = box_office(theatre).await?;
    for line in join_all(lines).await {
        all.add(&line??);
    }
    Ok(all)
}

/// One buyer after the other, until every seat is sold.
async fn stand_in_line(mut shop: Shop, line: usize) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for number in 1.. {
        let free = shop.hall.free().await?;
        if free.is_empty() {
            break;
        }
        let seat = free[rand::rng().random_range(0..free.len())];
        let buyer = format!("buyer {number} of line {line}");
        let payment = Payment::by_chance();
        let ever = matches!(payment, Payment::After(_));
        let mut payment = pin!(payment.arrive());
        let outcome = shop.buy(seat, &buyer, payment.as_mut()).await?;
        tally.note(seat, &buyer, &outcome);
        match outcome {
            Outcome::TimeUp(_) if !ever => tally.abandoned += 1,
            Outcome::TimeUp(token) => {
                payment.await;
                let late = shop.paid(seat, &buyer, token).await?;
                tally.note(seat, &buyer, &late);
                tally.late_but_first += u32::from(matches!(late, Outcome::Booked));
            }
            // A look around, before the next one asks.
            Outcome::Busy | Outcome::Sold | Outcome::Later => {
                sleep(Duration::from_millis(20)).await
            }
            Outcome::Booked | Outcome::Refund(_) => {}
        }
    }
    Ok(tally)
}

/// Takes what it sees free, whoever is about to pay for it.
async fn box_office(theatre: &Theatre) -> Result<Tally, Failure> {
    let hall = theatre.hall().await?;
    let mut tally = Tally::default();
    for number in 1..=BY_HAND {
        sleep(LEASE / 2).await;
        let Some(seat) = hall.free().await?.pop() else {
            break;
        };
        let buyer = format!("customer {number} of the box office");
        let outcome = match hall.sell_by_hand(seat, &buyer).await? {
            Booking::Done => Outcome::Booked,
            refused => Outcome::Refund(refused),
        };
        tally.note(seat, &buyer, &outcome);
    }
    Ok(tally)
}
