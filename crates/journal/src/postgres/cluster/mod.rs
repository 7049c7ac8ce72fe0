//! A cluster: the table of nodes and shards, and one node's membership.
//!
//! - `table`: performs the queries of [`cluster::Membership`], and reads the table for operators.
//! - `member`: drives the state machine of one node.

mod member;
mod table;

pub use member::{ClusterEvent, ClusterMember};
pub use table::{ClusterNode, ClusterTable};
