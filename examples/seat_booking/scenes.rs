//! One scene for each thing that can go wrong, on a seat of its own.

use std::time::{Duration, Instant};

use futures::future::ready;
use quorumlock::{Client, Guard};

use crate::Failure;
use crate::hall::{Booking, Theatre};
use crate::shop::{LEASE, Outcome, Reserved, Shop};
use crate::tally::Tally;

/// One for each scene.
pub const SEATS: i32 = 4;

/// For scenes in which no lease shall end, however slow the machine.
const PLENTY: Duration = Duration::from_secs(20);

pub async fn play(theatre: &Theatre, client: &Client, tally: &mut Tally) -> Result<(), Failure> {
    let locks = client.clone();
    let mut shop = Shop {
        locks,
        hall: theatre.hall().await?,
        lease: PLENTY,
    };
    while_somebody_pays(&mut shop, tally).await?;
    the_box_office(&mut shop, tally).await?;
    shop.lease = LEASE;
    the_late_payment(&mut shop, tally).await?;
    the_abandoned_seat(&mut shop, tally).await
}

async fn while_somebody_pays(shop: &mut Shop, tally: &mut Tally) -> Result<(), Failure> {
    println!("Seat 1: Ada is about to pay. Bob wants the seat too.");
    let ada = reserved(shop.reserve(1).await?)?;
    let bob = shop.buy(1, "bob", ready(())).await?;
    tally.note(1, "bob", &bob);
    let Outcome::Busy = bob else {
        return Err("bob was let in while ada paid".into());
    };
    println!("  Bob is told so before he pays: the lock refuses him.");
    sell(shop, 1, "ada", ada, tally).await
}

async fn the_box_office(shop: &mut Shop, tally: &mut Tally) -> Result<(), Failure> {
    println!("Seat 2: Ada is about to pay. The box office has never heard of locks.");
    let ada = reserved(shop.reserve(2).await?)?;
    let token = ada.fencing_token();
    let Booking::Done = shop.hall.sell_by_hand(2, "cyd").await? else {
        return Err("the box office could not sell a free seat".into());
    };
    tally.note(2, "cyd", &Outcome::Booked);
    let second = shop.paid(2, "ada", token).await?;
    tally.note(2, "ada", &second);
    let Outcome::Refund(Booking::ConstraintRefused) = second else {
        return Err("seat 2 was sold twice".into());
    };
    println!("  Lock and token were hers, and the constraint knows better. Money back.");
    Ok(())
}

async fn the_late_payment(shop: &mut Shop, tally: &mut Tally) -> Result<(), Failure> {
    println!("Seat 3: Ada pays, and the bank takes its time.");
    let ada = reserved(shop.reserve(3).await?)?;
    let token = ada.fencing_token();
    ada.lost().await;
    println!("  Her time is up. Bob is about to pay when her money comes.");
    let bob = reserved(shop.wait_for(3).await?)?;
    let late = shop.paid(3, "ada", token).await?;
    tally.note(3, "ada", &late);
    let Outcome::Refund(Booking::TokenRefused(stale)) = late else {
        return Err("ada's late payment was taken".into());
    };
    println!("  Money back: {stale}.");
    sell(shop, 3, "bob", bob, tally).await
}

async fn the_abandoned_seat(shop: &mut Shop, tally: &mut Tally) -> Result<(), Failure> {
    println!("Seat 4: Ada closes her browser. Bob waits.");
    let begun = Instant::now();
    // Nobody comes back to release it: the lease ends by itself.
    std::mem::forget(reserved(shop.reserve(4).await?)?);
    let bob = reserved(shop.wait_for(4).await?)?;
    let waited = begun.elapsed();
    println!("  After {waited:.0?} the seat is his; it was kept for {LEASE:.0?} at most.");
    tally.abandoned += 1;
    sell(shop, 4, "bob", bob, tally).await
}

/// They pay at once, while the seat is kept for them.
async fn sell(
    shop: &mut Shop,
    seat: i32,
    buyer: &str,
    guard: Guard,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let outcome = shop.paid(seat, buyer, guard.fencing_token()).await?;
    let _ = guard.release().await;
    tally.note(seat, buyer, &outcome);
    match outcome {
        Outcome::Booked => Ok(()),
        _ => Err(format!("{buyer} did not get seat {seat}").into()),
    }
}

fn reserved(outcome: Reserved) -> Result<Guard, Failure> {
    match outcome {
        Reserved::Yes(guard) => Ok(guard),
        Reserved::Busy => Err("somebody else holds a free seat".into()),
        Reserved::Sold => Err("a free seat is sold".into()),
        Reserved::Later(error) => Err(error.into()),
    }
}
