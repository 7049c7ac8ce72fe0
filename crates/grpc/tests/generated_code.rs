//! The generated code is checked in, so that a build needs neither protoc nor the code generators. This test keeps it current.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::path::Path;

#[test]
fn the_generated_code_matches_the_proto_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile([folder.join("proto/aaep.proto")], [folder.join("proto")]).unwrap();
    let output = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(output.path())
        .compile_fds(descriptors)
        .unwrap();
    let generated = std::fs::read_to_string(output.path().join("aaep.v1.rs")).unwrap();
    let path = folder.join("src/generated.rs");
    if std::env::var_os("REWRITE_GENERATED").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(checked_in == generated, "run this test with REWRITE_GENERATED=1 and commit src/generated.rs");
}
