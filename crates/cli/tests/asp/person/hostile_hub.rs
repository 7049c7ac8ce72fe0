//! A hub, or somebody between the node and the hub, that forges answers.
