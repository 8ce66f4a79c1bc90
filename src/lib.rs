//! Distributed locks on independent Redis or Valkey nodes.
