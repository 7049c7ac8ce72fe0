//! The crate as its users see it: what it builds, what it documents and what it exports.

mod build;
mod dependencies;
mod documented;
mod exports;
mod fields;
