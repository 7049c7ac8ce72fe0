//! Rules about JSON text, the envelope, extensions and human language: chapters 2, 3, 7, 10 and 11.
//! `rules!` explains the form `strict/receive @step`.

use super::rules;

rules! {
    // JSON text (§3.8)
    UTF8: "AAEP-3.8-1" error/error @1 "an event must be UTF-8 without a byte-order mark" aliases ["AAEP-11.3.1-1"];
    JSON: "AAEP-3.8-2" error/error @1 "an event must be one JSON text as defined by RFC 8259";
    OBJECT: "AAEP-3.9-1" error/error @1 "an event or message must be a JSON object";
    CHECK_LIMITS: "AAEP-3.9-9" error/error @9 "input beyond the limits of this checker cannot be checked, so it does not pass";
    INTEROPERABLE_JSON: "AAEP-D.1-1" error/warning @1
        "keys must be unique and surrogates must be paired, otherwise parsers disagree about the content";
    NUMBER_RANGE: "AAEP-3.8-4" error/error @1 "numbers must fit into an IEEE 754 double";
    INTEGER_RANGE: "AAEP-3.8-5" error/warning @1 "integers outside -2^53..2^53 must be written as strings";
    INTEGER_FORM: "C-A19" error/warning @7 "integers must be written without a fraction or an exponent";

    // Required members (§3.2)
    REQUIRED_MEMBERS: "AAEP-3.2-1" error/error @2
        "every event must have @context, type, event_id, session_id, timestamp and producer"
        aliases ["AAEP-3.9-2", "AAEP-4.0-1", "AAEP-7.4-2"];
    CONTEXT_PRESENT: "AAEP-3.2.1-1" error/error @2 "every event must have an @context";
    TYPE_PRESENT: "AAEP-3.2.2-1" error/error @2 "every event must have a type, which must be a string";
    PRODUCER: "AAEP-3.2.6-1" error/error @3 "producer must be an object with an agent_id"
        aliases ["AAEP-2.3.6-1", "AAEP-3.9-3"];

    // @context (§3.2.1)
    CONTEXT_CORE: "AAEP-3.2.1-2" error/error @4
        "@context must be <https://aaep-protocol.org/context/v1>, or an array of strings that starts with it"
        aliases ["AAEP-3.9-4"];
    CONTEXT_ITEMS: "AAEP-3.2.1s-1" error/warning @4 "an @context array must have at least one item, and all items must be URIs";
    CONTEXT_VERSIONED: "AAEP-7.9-2" warning/warning @4
        "the @context URI of an extension should contain its major version, like /v1";
    CONTEXT_FOREIGN: "AAEP-7.2-6" error/warning @4
        "the @context URI of an extension must not be in the namespace of AAEP, which is aaep: or https://aaep-protocol.org/types/";

    // type (§3.2.2)
    TYPE_FORM: "AAEP-3.2.2-2" error/warning @5
        "type must be prefix:name with a prefix that @context declares, or a full URI" aliases ["AAEP-7.4-1"];
    TYPE_CORE: "AAEP-3.2.2-5" error/warning @5 "only the twelve core types may use the aaep: prefix"
        decisions ["C-J1", "C-F3", "C-G1"] aliases ["AAEP-3.2.2-6"];
    TYPE_DECLARED: "AAEP-3.9-5" error/warning @5
        "a type that is a full URI must belong to an extension that @context declares" decisions ["C-J1"];
    TYPE_COMPACT: "AAEP-3.2.2-4" warning/warning @5 "type should have the compact form, like aaep:agent.tool.invoked"
        decisions ["C-A3", "C-A4"];

    // Ids and time (§3.2.3 to §3.2.5)
    EVENT_ID: "AAEP-3.2.3-1" error/error @6 "event_id must be evt_ followed by 1 to 64 ASCII letters or digits"
        decisions ["C-A5"] aliases ["AAEP-3.9-6"];
    EVENT_ID_RANDOM: "AAEP-3.2.3-3" warning/warning @6
        "event_id should be globally unique: 128 random bits as 32 hexadecimal digits, not a counter";
    SESSION_ID: "AAEP-3.2.4-1" error/error @6 "session_id must be sess_ followed by 1 to 64 ASCII letters or digits"
        decisions ["C-A5"];
    TIME_FORM: "AAEP-3.2.5-1" error/error @6
        "timestamp must be YYYY-MM-DDTHH:MM:SS with Z or an offset, with a capital T and Z" decisions ["C-A6", "C-A7"];
    TIME_DIGITS: "AAEP-3.2.5-2" error/warning @6 "the fraction of a timestamp must have 0, 3 or 6 digits" decisions ["C-A6"];
    TIME_MILLIS: "AAEP-3.2.5-3" warning/warning @6 "a timestamp should have 3 fraction digits";
    TIME_REAL: "AAEP-3.2.5-4" error/error @6
        "timestamp must be a real date and time, not a placeholder like 1970" decisions ["C-A6"];

    // producer (§3.2.6)
    AGENT_ID: "AAEP-3.2.6.1-1" error/error @3 "agent_id must be a non-empty string";
    AGENT_ID_STABLE: "AAEP-3.2.6.1-2" error/warning @3
        "agent_id must stay the same across versions; put the version into agent_version";
    PRODUCER_TEXT: "AAEP-3.2.6.2-1" error/warning @3
        "agent_version, agent_name and model must be non-empty strings" decisions ["C-A16"];
    MANIFEST_URI: "AAEP-3.2.6.5-1" error/warning @3 "manifest_uri must be a URI with a scheme (RFC 3986)";
    PRODUCER_MEMBERS: "AAEP-3.2.6s-1" error/warning @3
        "producer may only contain agent_id, agent_version, agent_name, model and manifest_uri";

    // Recommended and optional members (§3.3, §3.4)
    VERBOSITY: "AAEP-3.3.1-1" error/warning @3 "verbosity must be terse, normal or detailed" decisions ["C-J2"];
    URGENCY: "AAEP-3.3.2-1" error/warning @3 "urgency must be background, normal or critical" decisions ["C-J2"];
    URGENCY_PRESENT: "AAEP-3.3.2-2" warning/warning @3 "every event should have an urgency" aliases ["AAEP-3.3-1"];
    SEQUENCE_NUMBER: "AAEP-3.4.1-1" error/warning @3
        "sequence_number must be a non-negative integer, and 0 on agent.session.started";
    CORRELATION_ID: "AAEP-3.4.2-1" error/warning @3 "correlation_id must be a string";
    VERSION_FORM: "AAEP-3.4.4s-1" error/warning @3 "aaep_version must be N.N.N with an optional -suffix and no build metadata";
    VERSION_PUBLISHED: "AAEP-3.4.4-1" error/warning @3 "aaep_version must be a published version: 1.0.0 or 0.1.0-draft"
        decisions ["C-A11"];
    VERSION_PRESENT: "AAEP-3.4.4-2" warning/warning @3 "every event should have an aaep_version";

    // Unknown and reserved members (§3.5, §3.6)
    RESERVED_AAEP: "AAEP-3.5-1" error/warning @3 "names that start with aaep_ are reserved; only aaep_version exists"
        decisions ["C-A1"];
    RESERVED_JSON_LD: "AAEP-3.5-3" error/warning @3 "an event must not contain @id, @graph, @base or @vocab"
        decisions ["C-A1"];
    UNKNOWN_MEMBER: "AAEP-3.5-4" error/warning @7
        "an event may only contain the members of the envelope and of its type; anything else belongs in extensions, under a prefix"
        decisions ["C-A1", "C-A2", "C-A18", "C-B17", "C-H5"]
        aliases ["AAEP-2.2.6-1", "AAEP-2.2.6-2", "AAEP-3.11-1", "AAEP-7.2-5"];
    MEMBER_ORDER: "AAEP-3.6-2" warning/warning @3
        "members should be in the recommended order: envelope, localization_hints, correlation_id, payload, extensions";

    // Extensions (§3.4.3, chapter 7)
    EXTENSION_DECLARED: "AAEP-3.4.3-1" error/warning @8 "@context must declare every prefix in extensions"
        decisions ["C-A12"];
    EXTENSION_OBJECT: "AAEP-3.4.3-2" error/warning @8 "extensions must be an object that contains one object for each prefix"
        decisions ["C-A13"];
    EXTENSION_UNKNOWN: "C-A12" warning/warning @8
        "this prefix is not in our registry, so we cannot tell whether @context declares it";
    EXTENSION_BODY: "AAEP-3.9-8" error/warning @8 "a known extension must have the form that it declares"
        decisions ["C-J3"];
    PREFIX_RESERVED: "AAEP-7.3.2-1" error/warning @8 "an extension must not use the prefixes aaep, xsd, rdf and rdfs, or names with @"
        decisions ["C-G4"];
    PREFIX_SHORT: "AAEP-7.3.1-3" warning/warning @8 "a prefix should have more than one letter";

    // Size (§3.7)
    EVENT_SIZE: "AAEP-3.7-1" warning/warning @9 "an event should be at most 64 KiB long";
    EVENT_MEMBERS: "AAEP-3.7-2" warning/warning @9
        "an event should have at most 32 members, including those of extensions";
    EVENT_DEPTH: "AAEP-3.7-3" warning/warning @9 "an event should be nested at most 8 levels deep";
    STRING_SIZE: "AAEP-3.7-4" warning/warning @9 "a string should be at most 16 KiB long" decisions ["C-A14"];

    // Language (§3.3.3, chapter 11)
    HINTS_PRESENT: "AAEP-11.1-1" error/warning @7 "an event with text for people must have localization_hints"
        decisions ["C-A9"] aliases ["AAEP-2.2.10-1"];
    PRIMARY_LANGUAGE: "AAEP-11.1.1-1" error/warning @7
        "localization_hints must contain the primary_language of the event's text" decisions ["C-A9"];
    TEXT_DIRECTION: "AAEP-11.1.1-2" error/warning @3 "text_direction must be ltr, rtl or auto" decisions ["C-J2"];
    LANGUAGE_TAG: "AAEP-11.1.2-1" error/warning @3 "languages must be BCP 47 tags (RFC 5646), like en-US or yo" decisions ["C-A15"];
    HINTS_MEMBERS: "AAEP-3.3.3s-1" error/warning @3
        "localization_hints may only contain primary_language, text_direction, available_languages, fallback_chain, script and calendar"
        decisions ["C-G2"];
    HINTS_LISTS: "AAEP-3.3.3s-2" error/warning @3
        "available_languages must have at most 32 different tags, fallback_chain at most 16" aliases ["AAEP-3.7-5"];
    SCRIPT: "AAEP-3.3.3s-3" error/warning @3 "script must be four letters in title case (ISO 15924), like Latn";
    NFC: "AAEP-11.3.2-1" warning/warning @7 "text should be in Unicode normalization form C";
    LEADING_MARK: "AAEP-11.3.3-4" warning/warning @7 "text should not start with a combining mark";
    MIXED_DIRECTION: "AAEP-11.4.2-1" error/warning @7
        "text with both directions must have Unicode bidi controls or text_direction auto" decisions ["C-H4"];
    CONTROL_CHARACTERS: "AAEP-11.4.2-2" warning/warning @7
        "text should not contain control characters, terminal escapes or bidi overrides; sayso makes them harmless before it shows text";
    LANGUAGE_MARKUP: "AAEP-11.5.2-1" warning/warning @7 "text should not contain inline language markup";

    // Secrets (§10.2.2)
    SECRET: "AAEP-10.2.2-6" error/warning @7 "text for people must not contain secrets" aliases ["AAEP-10.2.2-7"];
    SECRET_IN_ARGS: "AAEP-4.3.1-5" error/warning @7 "args_summary must not contain secrets";
    SECRET_IN_REQUEST: "AAEP-4.1.1s-4" error/warning @7 "request_text must not contain secrets";
}
