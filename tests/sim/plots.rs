//! The plots of docs/plots: what the settings do, in the simulated world and by its clock.
//!
//! The worlds are made from fixed seeds, so the plots are the same on every machine. A change that
//! moves them fails here: `scripts/plots` draws them anew, for somebody to look at.

mod chart;
mod figures;

use std::path::Path;

use chart::Chart;

/// The plot in docs/plots is the one that was drawn just now.
fn is_as_committed(name: &str, chart: &Chart) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/plots/{name}.svg"));
    let drawn = chart.draw();
    if std::env::var_os("QUORUMLOCK_BLESS").is_some() {
        std::fs::write(&path, &drawn).expect("the plot is written");
    }
    let committed = std::fs::read_to_string(&path).expect("the plot");
    assert!(
        committed == drawn,
        "docs/plots/{name}.svg shows what the code does not do any more:\n{chart:#?}\nRun \
         scripts/plots, look at the plot, and at what docs/tuning.md says of it"
    );
}

#[test]
fn the_plots_of_waiting_are_what_the_code_does() {
    // A minute on a busy machine: hundreds of worlds.
    let asked = ["QUORUMLOCK_FULL", "QUORUMLOCK_BLESS"].map(std::env::var_os);
    if asked.iter().all(Option::is_none) {
        return;
    }
    let [time, requests] = figures::waiting();
    is_as_committed("waiting", &time);
    is_as_committed("requests", &requests);
}

#[test]
fn the_plot_of_time_limits_is_what_the_code_does() {
    is_as_committed("node_timeout", &figures::node_timeout());
}

#[test]
fn the_plot_of_validity_is_what_the_code_does() {
    is_as_committed("validity", &figures::validity());
}
