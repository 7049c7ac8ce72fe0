PRAGMA auto_vacuum=INCREMENTAL; PRAGMA application_id=1935767914; PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO marks VALUES('floor',0,183240931574911001);
INSERT INTO marks VALUES('indexed',2,-4494650624198044437);
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    lease INTEGER NOT NULL,
    record BLOB NOT NULL,
    ended INTEGER,
    oldest INTEGER,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO sessions VALUES(1,'old','bank','token-1',60,X'7b7d',NULL,NULL,-3273105423869074532);
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    at INTEGER NOT NULL,
    critical INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
INSERT INTO events VALUES(1,1,1,0,2902370437236969090,'evt_1',X'7b226e223a317d');
INSERT INTO events VALUES(2,1,2,1,-2778727425771403302,'evt_2',X'7b226e223a327d');
CREATE TABLE event_ids (id TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO event_ids VALUES('evt_1',1);
INSERT INTO event_ids VALUES('evt_2',2);
CREATE TABLE session_events (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
INSERT INTO session_events VALUES(1,1);
INSERT INTO session_events VALUES(1,2);
CREATE TABLE questions (
    number INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (number),
    deadline INTEGER NOT NULL,
    record BLOB NOT NULL,
    decision TEXT,
    decided_by TEXT,
    receipt BLOB,
    decided INTEGER,
    call BLOB,
    spent INTEGER,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO questions VALUES(1,'q',1,90,X'7061793f','accept','reply',X'7369676e6564',3,NULL,NULL,6279877854470751916);
CREATE TABLE subscriptions (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO subscriptions VALUES('sub','anna',X'7b7d',1329026009721590277);
CREATE TABLE cursors (
    subscription TEXT PRIMARY KEY REFERENCES subscriptions (id),
    position INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cursors VALUES('sub',1,3940332830514289170);
CREATE TABLE keys (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    response BLOB NOT NULL,
    at INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (principal, key)
) STRICT;
INSERT INTO keys VALUES(1,'token-1','k',X'646967657374',X'323031',4,1563692564790326628);
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    what BLOB NOT NULL
) STRICT;
INSERT INTO attempts VALUES(1,5,'sub',X'6c617465');
CREATE INDEX sessions_open ON sessions (number) WHERE ended IS NULL;
CREATE INDEX sessions_ended ON sessions (oldest) WHERE ended IS NOT NULL;
CREATE INDEX questions_of ON questions (session);
CREATE INDEX questions_open ON questions (token) WHERE decided IS NULL;
CREATE INDEX questions_decided ON questions (decided) WHERE decided IS NOT NULL;
CREATE INDEX keys_at ON keys (at);
CREATE INDEX attempts_at ON attempts (at);
COMMIT;
