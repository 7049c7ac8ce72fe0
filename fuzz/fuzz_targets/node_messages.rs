//! Fuzzes the decoders of what nodes of a cluster send to each other. They must not panic, and what they accept must survive a
//! round trip.

#![no_main]

use hub::command::RequestId;
use hub::encoding;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = encoding::decode_request(RequestId(1), bytes) {
        let encoded = encoding::encode_request(&request).expect("a decoded request can be encoded");
        let decoded = encoding::decode_request(RequestId(1), &encoded).expect("an encoded request can be decoded");
        assert_eq!(format!("{decoded:?}"), format!("{request:?}"));
    }
    if let Ok(output) = encoding::decode_output(bytes) {
        let encoded = encoding::encode_output(&output).expect("a decoded output can be encoded");
        let encoded = encoded.expect("no log event is decoded");
        let decoded = encoding::decode_output(&encoded).expect("an encoded output can be decoded");
        // A number that is not equal to itself is an answer, too.
        assert_eq!(format!("{decoded:?}"), format!("{output:?}"));
    }
});
