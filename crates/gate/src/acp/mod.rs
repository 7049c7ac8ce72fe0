//! The gate for the Agent Client Protocol.
