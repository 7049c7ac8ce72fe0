//! Rules about the text, the envelope, extensions and human language: chapters 2, 3, 7, 10 and 11.

use super::rules;

rules! {
    // The text (§3.8)
    UTF8: "AAEP-3.8-1" error/error @1 "an event is UTF-8, without a byte-order mark" also ["AAEP-11.3.1-1"];
    JSON: "AAEP-3.8-2" error/error @1 "an event is one JSON text by RFC 8259, and no dialect of it";
    OBJECT: "AAEP-3.9-1" error/error @1 "an event or message is a JSON object";
    READABLE: "AAEP-3.9-9" error/error @9 "what is beyond the limits of this check is not checked, and so does not pass";
    SOUND_JSON: "AAEP-D.1-1" error/warning @1
        "keys are not doubled and surrogates come in pairs, or readers disagree about what was said";
    NUMBER_RANGE: "AAEP-3.8-4" error/error @1 "numbers fit into an IEEE 754 double";
    INTEGER_RANGE: "AAEP-3.8-5" error/warning @1 "integers outside -2^53..2^53 are written as strings";
    INTEGER_FORM: "C-A19" error/warning @7 "integers are written without a fraction or an exponent";

    // Required members (§3.2)
    REQUIRED: "AAEP-3.2-1" error/error @2
        "every event has @context, type, event_id, session_id, timestamp and producer"
        also ["AAEP-3.9-2", "AAEP-4.0-1", "AAEP-7.4-2"];
    CONTEXT_PRESENT: "AAEP-3.2.1-1" error/error @2 "every event has an @context";
    TYPE_PRESENT: "AAEP-3.2.2-1" error/error @2 "every event has a type, and it is a string";
    PRODUCER: "AAEP-3.2.6-1" error/error @3 "producer is an object with an agent_id"
        also ["AAEP-2.3.6-1", "AAEP-3.9-3"];

    // @context (§3.2.1)
    CONTEXT_CORE: "AAEP-3.2.1-2" error/error @4
        "@context is <https://aaep-protocol.org/context/v1>, or an array of strings of which that is the first"
        also ["AAEP-3.9-4"];
    CONTEXT_ITEMS: "AAEP-3.2.1s-1" error/warning @4 "an @context array has at least one item, and all are URIs";
    CONTEXT_VERSIONED: "AAEP-7.9-2" warning/warning @4
        "the @context URI of an extension should name its major version, like /v1" also ["AAEP-7.3-2"];

    // type (§3.2.2)
    TYPE_FORM: "AAEP-3.2.2-2" error/warning @5
        "type is prefix:name with a prefix that @context declares, or a full URI" also ["AAEP-7.4-1"];
    TYPE_CORE: "AAEP-3.2.2-5" error/warning @5 "under aaep: there are the twelve core types and no others"
        follows ["C-J1", "C-F3", "C-G1"] also ["AAEP-3.2.2-6", "AAEP-7.2-6"];
    TYPE_DECLARED: "AAEP-3.9-5" error/warning @5
        "a type that is a full URI belongs to an extension that @context declares" follows ["C-J1"];
    TYPE_COMPACT: "AAEP-3.2.2-4" warning/warning @5 "the compact form of a type is preferred, like aaep:agent.tool.invoked"
        follows ["C-A3", "C-A4"];

    // Ids and time (§3.2.3 to §3.2.5)
    EVENT_ID: "AAEP-3.2.3-1" error/error @6 "event_id is evt_ followed by 1 to 64 ASCII letters or digits"
        follows ["C-A5"] also ["AAEP-3.9-6"];
    EVENT_ID_RANDOM: "AAEP-3.2.3-3" warning/warning @6
        "event_id should be unique everywhere: 128 random bits as 32 hexadecimal digits, not a counter";
    SESSION_ID: "AAEP-3.2.4-1" error/error @6 "session_id is sess_ followed by 1 to 64 ASCII letters or digits"
        follows ["C-A5"];
    TIME_FORM: "AAEP-3.2.5-1" error/error @6
        "timestamp is YYYY-MM-DDTHH:MM:SS with Z or an offset, capital T and Z" follows ["C-A6", "C-A7"];
    TIME_DIGITS: "AAEP-3.2.5-2" error/warning @6 "a timestamp's fraction has 0, 3 or 6 digits" follows ["C-A6"];
    TIME_MILLIS: "AAEP-3.2.5-3" warning/warning @6 "a timestamp should have 3 fraction digits";
    TIME_REAL: "AAEP-3.2.5-4" error/error @6
        "timestamp is an instant that was: a real day and hour, and no stand-in like 1970" follows ["C-A6"];

    // producer (§3.2.6)
    AGENT_ID: "AAEP-3.2.6.1-1" error/error @3 "agent_id is a string that is not empty";
    AGENT_ID_STABLE: "AAEP-3.2.6.1-2" error/warning @3
        "agent_id stays the same across versions; the version goes to agent_version";
    PRODUCER_TEXT: "AAEP-3.2.6.2-1" error/warning @3
        "agent_version, agent_name and model are strings that are not empty" follows ["C-A16"];
    MANIFEST_URI: "AAEP-3.2.6.5-1" error/warning @3 "manifest_uri is a URI with its scheme (RFC 3986)";
    PRODUCER_CLOSED: "AAEP-3.2.6s-1" error/warning @3
        "producer holds agent_id, agent_version, agent_name, model and manifest_uri, and nothing else";

    // Advised and optional members (§3.3, §3.4)
    VERBOSITY: "AAEP-3.3.1-1" error/warning @3 "verbosity is terse, normal or detailed" follows ["C-J2"];
    URGENCY: "AAEP-3.3.2-1" error/warning @3 "urgency is background, normal or critical" follows ["C-J2"];
    URGENCY_SET: "AAEP-3.3.2-2" warning/warning @3 "urgency should be set on every event" also ["AAEP-3.3-1"];
    SEQUENCE_NUMBER: "AAEP-3.4.1-1" error/warning @3
        "sequence_number is an integer from 0 on, and 0 on agent.session.started";
    CORRELATION: "AAEP-3.4.2-1" error/warning @3 "correlation_id is a string";
    VERSION_FORM: "AAEP-3.4.4s-1" error/warning @3 "aaep_version is N.N.N with an optional -suffix and no build part";
    VERSION_PUBLISHED: "AAEP-3.4.4-1" error/warning @3 "aaep_version is a published version: 1.0.0 or 0.1.0-draft"
        follows ["C-A11"];
    VERSION_SET: "AAEP-3.4.4-2" warning/warning @3 "aaep_version should be on every event";

    // Closed world (§3.5, §3.6)
    RESERVED_AAEP: "AAEP-3.5-1" error/warning @3 "names that begin with aaep_ are reserved; only aaep_version exists"
        follows ["C-A1"];
    RESERVED_JSON_LD: "AAEP-3.5-3" error/warning @3 "@id, @graph, @base and @vocab do not stand in an event"
        follows ["C-A1"];
    STRAY: "AAEP-3.5-4" error/warning @7
        "an event holds the members of its type and the envelope; all else goes into extensions under a prefix"
        follows ["C-A1", "C-A2", "C-A18", "C-B17", "C-H5"]
        also ["AAEP-2.2.6-1", "AAEP-2.2.6-2", "AAEP-3.11-1", "AAEP-7.2-5"];
    MEMBER_ORDER: "AAEP-3.6-2" warning/warning @3
        "members should stand in the advised order: envelope, localization_hints, correlation_id, payload, extensions";

    // Extensions (§3.4.3, chapter 7)
    EXTENSION_DECLARED: "AAEP-3.4.3-1" error/warning @8 "every prefix in extensions is declared through @context"
        follows ["C-A12"];
    EXTENSION_OBJECT: "AAEP-3.4.3-2" error/warning @8 "extensions is an object of objects, one for each prefix"
        follows ["C-A13"];
    EXTENSION_UNKNOWN: "C-A12" warning/warning @8
        "this prefix is not in our registry, so whether @context declares it cannot be told";
    EXTENSION_BODY: "AAEP-3.9-8" error/warning @8 "an extension that we know has the form that it declares"
        follows ["C-J3"];
    PREFIX_RESERVED: "AAEP-7.3.2-1" error/warning @8 "aaep, xsd, rdf, rdfs and names with @ are no extension's prefix"
        follows ["C-G4"];
    PREFIX_SHORT: "AAEP-7.3.1-3" warning/warning @8 "a prefix should have more than one letter";

    // Size (§3.7)
    EVENT_SIZE: "AAEP-3.7-1" warning/warning @9 "an event should be at most 64 KiB";
    EVENT_FIELDS: "AAEP-3.7-2" warning/warning @9
        "an event should have at most 32 members, those of extensions counted";
    EVENT_DEPTH: "AAEP-3.7-3" warning/warning @9 "an event should be nested at most 8 deep";
    STRING_SIZE: "AAEP-3.7-4" warning/warning @9 "a string should be at most 16 KiB" follows ["C-A14"];

    // Language (§3.3.3, chapter 11)
    HINTS: "AAEP-11.1-1" error/warning @7 "an event with text for people carries localization_hints"
        follows ["C-A9"] also ["AAEP-2.2.10-1"];
    PRIMARY_LANGUAGE: "AAEP-11.1.1-1" error/warning @7
        "localization_hints names the primary_language of the event's text" follows ["C-A9"];
    DIRECTION: "AAEP-11.1.1-2" error/warning @3 "text_direction is ltr, rtl or auto" follows ["C-J2"];
    TAG: "AAEP-11.1.2-1" error/warning @3 "languages are BCP 47 tags (RFC 5646), like en-US or yo" follows ["C-A15"];
    HINTS_CLOSED: "AAEP-3.3.3s-1" error/warning @3
        "localization_hints holds primary_language, text_direction, available_languages, fallback_chain, script and calendar, and nothing else"
        follows ["C-G2"];
    HINTS_LISTS: "AAEP-3.3.3s-2" error/warning @3
        "available_languages has at most 32 different tags, fallback_chain at most 16" also ["AAEP-3.7-5"];
    SCRIPT: "AAEP-3.3.3s-3" error/warning @3 "script is four letters in title case (ISO 15924), like Latn";
    NFC: "AAEP-11.3.2-1" warning/warning @7 "text should be in Unicode normalization form C";
    BARE_MARK: "AAEP-11.3.3-4" warning/warning @7 "text should not begin with a combining mark";
    MIXED_DIRECTION: "AAEP-11.4.2-1" error/warning @7
        "text of both directions has Unicode bidi controls or text_direction auto" follows ["C-H4"];
    CONTROLS: "AAEP-11.4.2-2" warning/warning @7
        "text relies on Unicode alone: control characters, terminal escapes and bidi overrides are made harmless where they are shown";
    LANGUAGE_MARKUP: "AAEP-11.5.2-1" warning/warning @7 "text should have no inline markup for its language";

    // Secrets (§10.2.2)
    SECRET: "AAEP-10.2.2-6" error/warning @7 "no secret stands in a text for people" also ["AAEP-10.2.2-7"];
    SECRET_IN_ARGS: "AAEP-4.3.1-5" error/warning @7 "no secret stands in args_summary";
    SECRET_IN_REQUEST: "AAEP-4.1.1s-4" error/warning @7 "no secret stands in request_text";
}
