//! What a look at a server in memory finds: for `check`, without any waiting.

use std::time::Duration;

use super::super::survey::{Facts, Marker, Plan, Role, Sample, Survey};
use super::super::{Fault, FaultKind};
use super::server::Server;
use crate::clock::Instant;

impl Server {
    /// Looks at the server at `now`. The round trips of the probe are worked out, not made.
    pub(crate) fn survey(&self, plan: &Plan, now: Instant) -> Survey {
        if self.faults.refusing {
            return Survey::failed(FaultKind::ConnectionRefused.into());
        }
        if self.faults.hung {
            let fault = Fault::new(FaultKind::Timeout, "connected, but no answer");
            return Survey::failed(fault);
        }
        let seconds = self.hands.at(now) / 1_000_000_000;
        let marker = self.store.get(&plan.marker_key, self.hands.millis(now));
        let since = marker.map(|stored| String::from_utf8_lossy(&stored.value).parse());
        Survey {
            fault: self.faults.present(),
            facts: Facts {
                product: Some("in memory".to_owned()),
                role: Some(Role::Master),
                run_id: Some(self.run_id.clone()),
                uptime: Some(Duration::from_secs(seconds.saturating_sub(self.born))),
                aof: Some(false),
                rdb: Some(false),
                max_memory: Some(0),
                eviction: Some("noeviction".to_owned()),
                cluster: Some(false),
                ..Facts::default()
            },
            marker: match since {
                None => Some(Marker::Absent),
                Some(since) => since.ok().map(Marker::Since),
            },
            missing: Vec::new(),
            unsure: false,
            samples: (0..plan.samples)
                .map(|n| self.sample(plan, n, now))
                .collect(),
        }
    }

    fn sample(&self, plan: &Plan, number: u32, now: Instant) -> Sample {
        let sent = now.after(plan.span / plan.samples.max(1) * number);
        let (_, latency) = self.faults.latency;
        let arrived = sent.after(latency);
        let done = arrived.after(self.faults.service);
        let micros = self.hands.at(done) / 1_000;
        Sample {
            sent,
            received: done.after(latency),
            node_time: Some(Duration::from_micros(micros)),
        }
    }
}
