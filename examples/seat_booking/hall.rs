//! The database: seats, bookings, and the highest token of each seat.

use quorumlock::fence::{Stale, postgres};
use quorumlock::tokio_postgres::error::SqlState;
use quorumlock::{FencingToken, tokio_postgres};
use tokio_postgres::{Client, NoTls};

use crate::Failure;
use crate::crowd;
use crate::scenes;

/// All the seats, in a schema that is dropped at the end.
pub struct Theatre {
    database: String,
    schema: String,
}

impl Theatre {
    /// The migrations of a service: its own tables, and that of the tokens.
    pub async fn build(database: &str) -> Result<Theatre, Failure> {
        let theatre = Theatre {
            database: database.to_owned(),
            schema: format!("seat_booking_{}", std::process::id()),
        };
        let client = connect(database).await?;
        let schema = &theatre.schema;
        let seats = theatre.seats();
        let tables = format!(
            "CREATE SCHEMA {schema}; SET search_path TO {schema};
             CREATE TABLE seat (id int PRIMARY KEY);
             CREATE TABLE booking (
                 seat int NOT NULL UNIQUE REFERENCES seat, -- the last line
                 buyer text NOT NULL
             );
             INSERT INTO seat SELECT generate_series(1, {seats});"
        );
        client.batch_execute(&tables).await?;
        client.batch_execute(postgres::CREATE_TABLE).await?;
        Ok(theatre)
    }

    /// How many seats there are: one for each scene, and those of the crowd.
    pub fn seats(&self) -> i32 {
        scenes::SEATS + crowd::SEATS
    }

    /// A connection of its own.
    pub async fn hall(&self) -> Result<Hall, Failure> {
        let client = connect(&self.database).await?;
        let path = format!("SET search_path TO {}", self.schema);
        client.batch_execute(&path).await?;
        Ok(Hall { client })
    }

    pub async fn pull_down(&self) -> Result<(), Failure> {
        let client = connect(&self.database).await?;
        let drop = format!(
            "SET client_min_messages = warning; DROP SCHEMA {} CASCADE",
            self.schema
        );
        Ok(client.batch_execute(&drop).await?)
    }
}

async fn connect(database: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// One connection to the theatre's database.
pub struct Hall {
    client: Client,
}

/// What the database knows of a seat.
pub enum Seat {
    Free,
    Sold,
    /// A higher token was here.
    Overtaken,
}

/// What became of a booking.
pub enum Booking {
    Done,
    /// Somebody has begun to buy the seat since; or has bought it.
    TokenRefused(Stale),
    /// The seat is sold, by somebody who asked neither lock nor token.
    ConstraintRefused,
}

/// The name of a seat, for its lock and for its tokens.
pub fn name(seat: i32) -> String {
    format!("seat/{seat}")
}

impl Hall {
    /// Shows the seat's new token, so that from here on no older one books it, and says whether
    /// the seat is free. Both are one transaction: what it reads cannot be changed any more by
    /// somebody with an older token.
    pub async fn begin(&mut self, seat: i32, token: FencingToken) -> Result<Seat, Failure> {
        let transaction = self.client.transaction().await?;
        match postgres::check(&transaction, name(seat), token).await {
            Ok(()) => {}
            Err(postgres::Error::Stale(_)) => return Ok(Seat::Overtaken),
            Err(error) => return Err(error.into()),
        }
        let query = "SELECT FROM booking WHERE seat = $1";
        let sold = transaction.query_opt(query, &[&seat]).await?;
        transaction.commit().await?;
        Ok(if sold.is_some() {
            Seat::Sold
        } else {
            Seat::Free
        })
    }

    /// Books the seat: token and booking are one transaction.
    pub async fn book(
        &mut self,
        seat: i32,
        buyer: &str,
        token: FencingToken,
    ) -> Result<Booking, Failure> {
        let transaction = self.client.transaction().await?;
        match postgres::check(&transaction, name(seat), token).await {
            Ok(()) => {}
            Err(postgres::Error::Stale(stale)) => return Ok(Booking::TokenRefused(stale)),
            Err(error) => return Err(error.into()),
        }
        let insert = "INSERT INTO booking (seat, buyer) VALUES ($1, $2)";
        match transaction.execute(insert, &[&seat, &buyer]).await {
            Ok(_) => transaction.commit().await?,
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                return Ok(Booking::ConstraintRefused);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Booking::Done)
    }

    /// The box office, which was there before the locks and knows nothing of them.
    pub async fn sell_by_hand(&self, seat: i32, buyer: &str) -> Result<Booking, Failure> {
        let insert = "INSERT INTO booking (seat, buyer) VALUES ($1, $2)";
        match self.client.execute(insert, &[&seat, &buyer]).await {
            Ok(_) => Ok(Booking::Done),
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                Ok(Booking::ConstraintRefused)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The seats that nobody has booked.
    pub async fn free(&self) -> Result<Vec<i32>, Failure> {
        let query = "SELECT id FROM seat WHERE id NOT IN (SELECT seat FROM booking) ORDER BY id";
        let rows = self.client.query(query, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Who has which seat.
    pub async fn sold(&self) -> Result<Vec<(i32, String)>, Failure> {
        let query = "SELECT seat, buyer FROM booking ORDER BY seat";
        let rows = self.client.query(query, &[]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
