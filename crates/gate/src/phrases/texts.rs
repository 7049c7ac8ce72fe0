//! The table of sentences. The Yoruba texts still need review by a native speaker (`docs/listening.md`).

use super::Phrase;

/// Declares the phrases, and a list of all of them for the tests.
macro_rules! phrases {
    ($($(#[$doc:meta])* $name:ident: $english:literal, $spanish:literal, $yoruba:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: Phrase = Phrase([$english, $spanish, $yoruba]);)*

        #[cfg(test)]
        pub(super) const ALL: &[(&str, Phrase)] = &[$((stringify!($name), $name)),*];
    };
}

phrases! {
    // What a call does.
    RUN: "Run: {}", "Ejecutar: {}", "Ṣe àṣẹ yìí: {}";
    APPLY_PATCH: "Apply this patch: {}", "Aplicar este parche: {}", "Lo àtúnṣe yìí: {}";
    CHANGE_ADD: "Change {}: add {}", "Cambiar {}: añadir {}", "Yí {} padà: fi {} kún un";
    CHANGE_REMOVE: "Change {}: remove {}", "Cambiar {}: quitar {}", "Yí {} padà: yọ {} kúrò";
    CHANGE_REPLACE: "Change {}: replace {} with {}", "Cambiar {}: sustituir {} por {}", "Yí {} padà: pààrọ̀ {} sí {}";
    CHANGE_PLACES: "Change {} in {} places", "Cambiar {} en {} sitios", "Yí {} padà ní ibi {}";
    CHANGE_ONE_PLACE: "Change {} in 1 place", "Cambiar {} en un sitio", "Yí {} padà ní ibi kan";
    REPLACE: "{}; replace {} with {}", "{}; sustituir {} por {}", "{}; pààrọ̀ {} sí {}";
    AND_MORE: "{}; and {} more", "{}; y {} más", "{}; àti {} sí i";
    NOTHING: "nothing", "nada", "asán";
    WRITE_LINES: "Write {}, {} lines: {}", "Escribir {}, {} líneas: {}", "Kọ {}, ìlà {}: {}";
    WRITE_LINE: "Write {}, 1 line: {}", "Escribir {}, una línea: {}", "Kọ {}, ìlà kan: {}";
    READ: "Read {}", "Leer {}", "Ka {}";
    FETCH: "Fetch {}", "Descargar {}", "Mú {} wá";
    SEARCH_IN: "Search {} for {}", "Buscar en {}: {}", "Wá inú {} fún {}";
    SEARCH: "Search for {}", "Buscar {}", "Wá {}";
    USE_OF_SERVER: "Use {} of the server {}", "Usar {} del servidor {}", "Lo {} ti ẹ̀rọ olùpèsè {}";
    USE_TOOL: "Use the tool {}", "Usar la herramienta {}", "Lo irinṣẹ́ {}";
    WITH: "{} with ", "{} con ", "{} pẹ̀lú ";
    MORE_ARGUMENTS: "{} and {} more arguments", "{} y {} argumentos más", "{} àti àfikún {} mìíràn";
    LEFT_OUT: "{} … {} characters left out … {}", "{} … {} caracteres omitidos … {}", "{} … a fo àmì {} … {}";

    // Warnings about a text.
    ONE_CONTROL: "Warning: it contains 1 control character.", "Aviso: contiene 1 carácter de control.", "Ìkìlọ̀: àmì ìdarí kan wà nínú rẹ̀.";
    CONTROLS: "Warning: it contains {} control characters.", "Aviso: contiene {} caracteres de control.", "Ìkìlọ̀: àmì ìdarí {} wà nínú rẹ̀.";
    ONE_REORDERING: "Warning: it contains 1 text-reordering character.", "Aviso: contiene 1 carácter que cambia el orden del texto.", "Ìkìlọ̀: àmì kan tó ń yí ètò ọ̀rọ̀ padà wà nínú rẹ̀.";
    REORDERING: "Warning: it contains {} text-reordering characters.", "Aviso: contiene {} caracteres que cambian el orden del texto.", "Ìkìlọ̀: àmì {} tó ń yí ètò ọ̀rọ̀ padà wà nínú rẹ̀.";
    ONE_INVISIBLE: "Warning: it contains 1 invisible character.", "Aviso: contiene 1 carácter invisible.", "Ìkìlọ̀: àmì kan tí a kò lè rí wà nínú rẹ̀.";
    INVISIBLE: "Warning: it contains {} invisible characters.", "Aviso: contiene {} caracteres invisibles.", "Ìkìlọ̀: àmì {} tí a kò lè rí wà nínú rẹ̀.";
    LOOK_ALIKES: "Warning: look-alike letters in {}.", "Aviso: letras que imitan a otras en {}.", "Ìkìlọ̀: lẹ́tà tó jọ òmíràn wà nínú {}.";
    SECRET_OR_CODE: "Warning: what looks like a secret may be code.", "Aviso: lo que parece un secreto puede ser código.", "Ìkìlọ̀: ohun tó jọ àṣírí lè jẹ́ kóòdù.";
    CODE_NOT_READ: "Warning: a part that may be code is not read aloud.", "Aviso: no se lee una parte que puede ser código.", "Ìkìlọ̀: a kò ka apá kan tó lè jẹ́ kóòdù.";

    // Why a call is risky.
    ONLY_READS: "It only reads.", "Solo lee.", "Kíkà nìkan ló ń ṣe.";
    UNKNOWN_PROGRAM: "sayso does not know what {} does, so it may not be possible to undo it.", "sayso no sabe qué hace {}, así que puede que no se pueda deshacer.", "sayso kò mọ ohun tí {} ń ṣe, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_RUN: "sayso does not know which program this runs, so it may not be possible to undo it.", "sayso no sabe qué programa se ejecuta, así que puede que no se pueda deshacer.", "sayso kò mọ ètò tí èyí ń lò, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_TOOL: "sayso does not know what this tool does, so it may not be possible to undo it.", "sayso no sabe qué hace esta herramienta, así que puede que no se pueda deshacer.", "sayso kò mọ ohun tí irinṣẹ́ yìí ń ṣe, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_ARGUMENTS: "sayso does not know what these arguments mean, so it may not be possible to undo it.", "sayso no sabe qué significan estos argumentos, así que puede que no se pueda deshacer.", "sayso kò mọ ìtumọ̀ àwọn àfikún yìí, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_COMMAND: "sayso does not know how the shell reads this command, so it may not be possible to undo it.", "sayso no sabe cómo lee el intérprete esta orden, así que puede que no se pueda deshacer.", "sayso kò mọ bí ẹ̀rọ ṣe máa ka àṣẹ yìí, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_INPUT: "sayso does not know where the input comes from, so it may not be possible to undo it.", "sayso no sabe de dónde viene la entrada, así que puede que no se pueda deshacer.", "sayso kò mọ ibi tí ohun tó ń kà ti wá, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_DEVICE: "sayso does not know what it does to read this device, so it may not be possible to undo it.", "sayso no sabe qué efecto tiene leer este dispositivo, así que puede que no se pueda deshacer.", "sayso kò mọ ohun tí kíka ẹ̀rọ yìí ń ṣe, nítorí náà ó lè má ṣeé dá padà.";
    UNKNOWN_GIT: "sayso does not know what this git command changes, so it may not be possible to undo it.", "sayso no sabe qué cambia esta orden de git, así que puede que no se pueda deshacer.", "sayso kò mọ ohun tí àṣẹ git yìí ń yí padà, nítorí náà ó lè má ṣeé dá padà.";
    GIT_ELSEWHERE: "sayso does not know what git does in the other folder, so it may not be possible to undo it.", "sayso no sabe qué hace git en la otra carpeta, así que puede que no se pueda deshacer.", "sayso kò mọ ohun tí git ń ṣe nínú àpò-fáìlì kejì, nítorí náà ó lè má ṣeé dá padà.";
    SETS_VARIABLE: "It sets the variable {}, which can change what programs do.", "Define la variable {}, que puede cambiar lo que hacen los programas.", "Ó ń yí {} padà, èyí tó lè yí ohun tí àwọn ètò ń ṣe padà.";
    MAY_SET_VARIABLES: "It can set variables or run commands.", "Puede definir variables o ejecutar órdenes.", "Ó lè yí àwọn nǹkan padà tàbí kó ṣe àṣẹ mìíràn.";
    REPLACES_CONTENT: "It writes to a file and can replace its content.", "Escribe en un archivo y puede sustituir su contenido.", "Ó ń kọ̀wé sínú fáìlì, ó sì lè pa ohun tó wà níbẹ̀ rẹ́.";
    OTHER_USER: "It runs with the rights of another user.", "Se ejecuta con los permisos de otro usuario.", "Ó ń lo àṣẹ oníṣe mìíràn.";
    CHANGES_NAME: "It can change the system's name.", "Puede cambiar el nombre del sistema.", "Ó lè yí orúkọ ẹ̀rọ yìí padà.";
    CHANGES_CLOCK: "It can change the system's clock.", "Puede cambiar el reloj del sistema.", "Ó lè yí aago ẹ̀rọ yìí padà.";
    MAY_WRITE: "It can write to a file or run another program.", "Puede escribir en un archivo o ejecutar otro programa.", "Ó lè kọ̀wé sínú fáìlì tàbí kó lo ètò mìíràn.";
    DELETES: "It deletes files.", "Borra archivos.", "Ó ń pa fáìlì rẹ́.";
    ENDS_PROGRAMS: "It ends running programs.", "Termina programas en marcha.", "Ó ń dá àwọn ètò tó ń ṣiṣẹ́ dúró.";
    RUNS: "It runs {}.", "Ejecuta {}.", "Ó ń lo {}.";
    CHANGES_FILES: "It changes files.", "Cambia archivos.", "Ó ń yí fáìlì padà.";
    REPLACES_FILES: "It can replace existing files.", "Puede sustituir archivos existentes.", "Ó lè pààrọ̀ fáìlì tó wà tẹ́lẹ̀.";
    CONTACTS_COMPUTER: "It contacts another computer.", "Se conecta con otro ordenador.", "Ó ń bá kọ̀ǹpútà mìíràn sọ̀rọ̀.";
    RUNS_FOR_EACH_FILE: "It runs a program for each file.", "Ejecuta un programa para cada archivo.", "Ó ń lo ètò kan fún fáìlì kọ̀ọ̀kan.";
    CHANGES_REPOSITORY: "It changes the repository.", "Cambia el repositorio.", "Ó ń yí ibi ìpamọ́ kóòdù padà.";
    PUBLISHES: "It publishes commits to another repository.", "Publica cambios en otro repositorio.", "Ó ń fi àtúnṣe ránṣẹ́ sí ibi ìpamọ́ mìíràn.";
    DISCARDS_WORK: "It can discard work that is not saved elsewhere.", "Puede descartar trabajo que no está guardado en otro sitio.", "Ó lè pa iṣẹ́ tí a kò tọ́jú síbòmíràn rẹ́.";
    CHANGES_PART: "It changes a part of a file in the project.", "Cambia una parte de un archivo del proyecto.", "Ó ń yí apá kan fáìlì iṣẹ́ yìí padà.";
    CHANGES_OUTSIDE: "It changes a hidden file, or a file outside the project.", "Cambia un archivo oculto o fuera del proyecto.", "Ó ń yí fáìlì tó fara pamọ́ padà, tàbí èyí tí kò sí nínú iṣẹ́ yìí.";
    WRITES_FILES: "It writes files, and can replace what is in them.", "Escribe archivos y puede sustituir lo que contienen.", "Ó ń kọ fáìlì, ó sì lè pa ohun tó wà nínú wọn rẹ́.";
    CONTACTS_SERVER: "It contacts a server that the agent chose.", "Se conecta con un servidor que eligió el agente.", "Ó ń bá ẹ̀rọ olùpèsè tí aṣojú náà yàn sọ̀rọ̀.";
    BEGINS_PLAN: "The agent begins to carry out its plan.", "El agente empieza a ejecutar su plan.", "Aṣojú náà máa bẹ̀rẹ̀ sí í ṣe ohun tó pète.";

    // What happens in a session of a harness.
    THIS_FOLDER: "this folder", "esta carpeta", "àpò-fáìlì yìí";
    WORKING_IN: "Working in {}.", "Trabajando en {}.", "Ó ń ṣiṣẹ́ nínú {}.";
    SUBAGENT_KIND: "Subagent {}, working in {}.", "Subagente {}, trabajando en {}.", "Aṣojú kékeré {}, ó ń ṣiṣẹ́ nínú {}.";
    SUBAGENT: "Subagent, working in {}.", "Subagente, trabajando en {}.", "Aṣojú kékeré, ó ń ṣiṣẹ́ nínú {}.";
    ABOUT_TO_USE: "About to use a tool.", "A punto de usar una herramienta.", "Ó fẹ́ lo irinṣẹ́ kan.";
    ALARM_CHANGED: "Alarm: this call is not the one that you permitted. Its arguments were changed after your yes: {}", "Alarma: esta llamada no es la que usted permitió. Sus argumentos se cambiaron después de su sí: {}", "Ìkìlọ̀ pàtàkì: èyí kọ́ ni ohun tí o gbà láyè. Wọ́n yí i padà lẹ́yìn tí o sọ pé bẹ́ẹ̀ni: {}";
    ALARM_REFUSED: "Alarm: this call was made, although you did not permit it: {}", "Alarma: esta llamada se hizo aunque usted no la permitió: {}", "Ìkìlọ̀ pàtàkì: ó ṣe èyí bó tilẹ̀ jẹ́ pé o kò gbà á láyè: {}";
    ALARM_UNASKED: "Alarm: this call was made without asking you: {}", "Alarma: esta llamada se hizo sin preguntarle: {}", "Ìkìlọ̀ pàtàkì: ó ṣe èyí láìbi ọ́ léèrè: {}";
    INTERRUPTED: "Interrupted.", "Interrumpido.", "Wọ́n dá a dúró.";
    FAILED: "It failed.", "Falló.", "Ó kùnà.";
    DONE: "Done.", "Hecho.", "Ó ti parí.";
    LINE: "1 line.", "1 línea.", "Ìlà kan.";
    LINES: "{} lines.", "{} líneas.", "Ìlà {}.";
    WAITING: "{} is waiting for you.", "{} le espera.", "{} ń dúró dè ọ́.";
    SERVER_ASKS: "The server {} asks: {} {}", "El servidor {} pregunta: {} {}", "Ẹ̀rọ olùpèsè {} ń béèrè: {} {}";

    // What an ACP agent does. The tables in `acp::wording` choose among these.
    ASK_READ: "Read: {}", "Leer: {}", "Ka èyí: {}";
    ASK_EDIT: "Change files: {}", "Cambiar archivos: {}", "Yí àwọn fáìlì padà: {}";
    ASK_DELETE: "Delete: {}", "Borrar: {}", "Pa èyí rẹ́: {}";
    ASK_MOVE: "Move: {}", "Mover: {}", "Gbé èyí síbòmíràn: {}";
    ASK_SEARCH: "Search: {}", "Buscar: {}", "Wá èyí: {}";
    ASK_THINK: "Think: {}", "Pensar: {}", "Ro èyí: {}";
    ASK_FETCH: "Fetch: {}", "Descargar: {}", "Mú èyí wá: {}";
    ASK_SWITCH_MODE: "Switch the mode: {}", "Cambiar el modo: {}", "Yí ipò iṣẹ́ padà: {}";
    ASK_OTHER: "Use a tool: {}", "Usar una herramienta: {}", "Lo irinṣẹ́ kan: {}";
    READING: "Reading: {}", "Leyendo: {}", "Ó ń ka èyí: {}";
    CHANGING: "Changing files: {}", "Cambiando archivos: {}", "Ó ń yí àwọn fáìlì padà: {}";
    DELETING: "Deleting: {}", "Borrando: {}", "Ó ń pa èyí rẹ́: {}";
    MOVING: "Moving: {}", "Moviendo: {}", "Ó ń gbé èyí síbòmíràn: {}";
    SEARCHING: "Searching: {}", "Buscando: {}", "Ó ń wá èyí: {}";
    RUNNING: "Running: {}", "Ejecutando: {}", "Ó ń ṣe àṣẹ yìí: {}";
    THINKING: "Thinking: {}", "Pensando: {}", "Ó ń ro èyí: {}";
    FETCHING: "Fetching: {}", "Descargando: {}", "Ó ń mú èyí wá: {}";
    SWITCHING_MODE: "Switching the mode: {}", "Cambiando el modo: {}", "Ó ń yí ipò iṣẹ́ padà: {}";
    USING_TOOL: "Using a tool: {}", "Usando una herramienta: {}", "Ó ń lo irinṣẹ́ kan: {}";
    LEADS_READ: "The agent reads this.", "El agente lee esto.", "Aṣojú náà máa ka èyí.";
    LEADS_EDIT: "The files are changed.", "Los archivos se cambian.", "Àwọn fáìlì náà máa yí padà.";
    LEADS_DELETE: "It is deleted and may not come back.", "Se borra y puede que no se recupere.", "Yóò parẹ́, ó sì lè má padà wá mọ́.";
    LEADS_MOVE: "The files are moved.", "Los archivos se mueven.", "Àwọn fáìlì náà máa kúrò síbòmíràn.";
    LEADS_EXECUTE: "The command runs on your computer with your rights.", "La orden se ejecuta en su ordenador con sus permisos.", "Àṣẹ náà máa ṣiṣẹ́ lórí kọ̀ǹpútà rẹ pẹ̀lú àṣẹ rẹ.";
    LEADS_THINK: "The agent continues.", "El agente continúa.", "Aṣojú náà máa bá a lọ.";
    LEADS_FETCH: "The agent sends this request over the network.", "El agente envía esta petición por la red.", "Aṣojú náà máa fi ìbéèrè yìí ránṣẹ́ lórí ìkànnì.";
    LEADS_SWITCH_MODE: "The agent may then act differently without asking.", "El agente puede actuar entonces de otro modo sin preguntar.", "Lẹ́yìn náà, aṣojú náà lè ṣe nǹkan mìíràn láìbéèrè.";
    LEADS_OTHER: "The agent does this immediately.", "El agente lo hace enseguida.", "Aṣojú náà máa ṣe èyí lójú ẹsẹ̀.";
    ALLOW_ONCE: "Allow once", "Permitir una vez", "Gbà á lẹ́ẹ̀kan";
    ALLOW_ALWAYS: "Always allow", "Permitir siempre", "Máa gbà á nígbà gbogbo";
    REJECT_ONCE: "Reject once", "Rechazar una vez", "Kọ̀ ọ́ lẹ́ẹ̀kan";
    REJECT_ALWAYS: "Always reject", "Rechazar siempre", "Máa kọ̀ ọ́ nígbà gbogbo";
    ANOTHER_ANSWER: "Another answer", "Otra respuesta", "Ìdáhùn mìíràn";
    NEW_FILE: "{} is new, with {}.", "{} es nuevo, con {}.", "{} jẹ́ tuntun, pẹ̀lú {}.";
    COUNTED_LINE: "1 line", "1 línea", "ìlà 1";
    COUNTED_LINES: "{} lines", "{} líneas", "ìlà {}";
    CHANGED_LINES: "{}: {} removed, {} added.", "{}: {} menos, {} más.", "{}: a yọ {} kúrò, a fi {} kún un.";
    PLAN: "Plan with {}: {}.", "Plan de {}: {}.", "Ìpète pẹ̀lú {}: {}.";
    COUNTED_STEP: "1 step", "1 paso", "ìgbésẹ̀ 1";
    COUNTED_STEPS: "{} steps", "{} pasos", "ìgbésẹ̀ {}";
    PLAN_MORE: "and {} more", "y {} más", "àti {} sí i";
    NEXT_STEP: "Next step: {}", "Siguiente paso: {}", "Ìgbésẹ̀ tó kàn: {}";
    STEPS_DONE: "{} of {} done.", "Hecho: {} de {}.", "{} nínú {} ti parí.";
    SHOWS_IMAGE: "The agent shows an image.", "El agente muestra una imagen.", "Aṣojú náà fi àwòrán hàn.";
    SENDS_SOUND: "The agent sends a sound.", "El agente envía un sonido.", "Aṣojú náà fi ohùn ránṣẹ́.";
    SHOWS_FILE: "The agent shows a file.", "El agente muestra un archivo.", "Aṣojú náà fi fáìlì hàn.";
    TURN_DONE: "The agent is done and waits for you.", "El agente ha terminado y le espera.", "Aṣojú náà ti parí, ó ń dúró dè ọ́.";
    TURN_CANCELLED: "The turn was cancelled.", "El turno se canceló.", "A fagi lé iṣẹ́ yìí.";
    TURN_REFUSED: "The agent refuses to continue.", "El agente se niega a continuar.", "Aṣojú náà kọ̀ láti bá a lọ.";
    TURN_TOO_LONG: "The agent stopped because its answer became too long.", "El agente paró porque su respuesta era demasiado larga.", "Aṣojú náà dúró nítorí pé ìdáhùn rẹ̀ gùn jù.";
    TURN_TOO_MANY: "The agent stopped because it made too many requests in one turn.", "El agente paró porque hizo demasiadas peticiones en un turno.", "Aṣojú náà dúró nítorí pé ìbéèrè rẹ̀ pọ̀ jù.";
    TURN_STOPPED: "The agent stopped: {}.", "El agente paró: {}.", "Aṣojú náà dúró: {}.";
    AGENT_ERROR: "The agent reports an error: {}", "El agente informa de un error: {}", "Aṣojú náà sọ pé àṣìṣe wà: {}";
    EDITOR_SESSION: "A session in your editor.", "Una sesión en su editor.", "Ìjókòó kan nínú olóòtú rẹ.";
    WORKING_ON: "Working on: {}", "Trabajando en: {}", "Ó ń ṣe èyí: {}";
    MODE_IS: "The mode is now {}.", "El modo es ahora {}.", "Ipò iṣẹ́ ti di {} báyìí.";
    EDITOR_CLOSED: "The editor closed the session.", "El editor cerró la sesión.", "Olóòtú ti pa ìjókòó yìí dé.";
    AGENT_ENDED: "The agent has ended.", "El agente ha terminado.", "Aṣojú náà ti parí.";
    AGENT_EXITED: "The agent exited with code {}.", "El agente terminó con el código {}.", "Aṣojú náà jáde pẹ̀lú kóòdù {}.";
    ASKS_PERMISSION: "The agent asks for permission. {}", "El agente pide permiso. {}", "Aṣojú náà ń tọrọ àyè. {}";
    WAITS_FOR_PERMISSION: "It waits for permission.", "Espera el permiso.", "Ó ń dúró de àyè.";
    YOU_ALLOWED: "{} You allowed it.", "{} Usted lo permitió.", "{} O gbà á láyè.";
    EDITOR_ALLOWED: "{} Allowed in the editor.", "{} Permitido en el editor.", "{} A gbà á láyè nínú olóòtú.";
    EDITOR_REFUSED: "Refused in the editor. {}", "Rechazado en el editor. {}", "A kọ̀ ọ́ nínú olóòtú. {}";
    CHECKING: "Checking that the agent keeps to what it asked.", "Comprobando que el agente cumple lo que pidió.", "A ń yẹ̀ ẹ́ wò bóyá aṣojú náà ń ṣe ohun tó béèrè.";
    WARNING: "Warning! {}", "¡Aviso! {}", "Ìkìlọ̀! {}";
    CHANGED_WHILE_ASKED: "While you were being asked, the agent changed the call ({}). It is now: {} Your answer no longer counts; answer in the editor.", "Mientras se le preguntaba, el agente cambió la llamada ({}). Ahora es: {} Su respuesta ya no cuenta; responda en el editor.", "Nígbà tí a ń bi ọ́, aṣojú náà yí i padà ({}). Ó ti di: {} Ìdáhùn rẹ kò wúlò mọ́; dáhùn nínú olóòtú.";
    CHANGED_AFTER: "After the call was allowed, the agent changed it ({}). It is now: {}", "Después de que se permitiera la llamada, el agente la cambió ({}). Ahora es: {}", "Lẹ́yìn tí a gbà á láyè, aṣojú náà yí i padà ({}). Ó ti di: {}";
    DID_NOT_WAIT: "The agent did it without waiting for an answer. {}", "El agente lo hizo sin esperar la respuesta. {}", "Aṣojú náà ṣe é láìdúró de ìdáhùn. {}";
    DID_REFUSED: "The agent did it although it was refused. {}", "El agente lo hizo aunque se rechazó. {}", "Aṣojú náà ṣe é bó tilẹ̀ jẹ́ pé a kọ̀ ọ́. {}";
    NO_REASON: "no reason given", "sin motivo indicado", "kò sọ ìdí rẹ̀";
    MORE_CHARACTERS: "{}… and {} more characters", "{}… y {} caracteres más", "{}… àti àmì {} sí i";

    // Calls of an MCP server.
    TOOL_OF: "{} of {}", "{} de {}", "{} ti {}";
    USE_WITH_WORDS: "Use {} of the server {}. {}", "Usar {} del servidor {}. {}", "Lo {} ti ẹ̀rọ olùpèsè {}. {}";
    NO_ARGUMENTS: "It has no arguments.", "No tiene argumentos.", "Kò ní àfikún kankan.";
    ARGUMENT_IS: "The argument is {}.", "El argumento es {}.", "Àfikún rẹ̀ ni {}.";
    ARGUMENT_IN_DETAILS: "1 more argument is only in the details.", "Un argumento más está solo en los detalles.", "Àfikún kan sí i wà nínú àlàyé nìkan.";
    ARGUMENTS_IN_DETAILS: "{} more arguments are only in the details.", "{} argumentos más están solo en los detalles.", "Àfikún {} sí i wà nínú àlàyé nìkan.";
    BESIDES: "Besides its arguments, the call has: {}", "Además de sus argumentos, la llamada tiene: {}", "Yàtọ̀ sí àfikún rẹ̀, ó tún ní: {}";
    YES: "yes", "sí", "bẹ́ẹ̀ni";
    NO: "no", "no, es falso", "rárá";
    EMPTY_TEXT: "an empty text", "un texto vacío", "ọ̀rọ̀ òfìfo";
    EMPTY_LIST: "an empty list", "una lista vacía", "àtòjọ òfìfo";
    EMPTY_OBJECT: "an empty object", "un objeto vacío", "àkójọ òfìfo";
    VALUES: "{} values: {}", "{} valores: {}", "iye {}: {}";
    MEMBERS: "{} members: {}", "{} miembros: {}", "apá {}: {}";
    CONTROL_CHARACTER: "(control character U+{})", "(carácter de control U+{})", "(àmì ìdarí U+{})";
    FIRST_OF: "{}… (the first {} of {} characters; the details have all)", "{}… (los primeros {} de {} caracteres; los detalles los tienen todos)", "{}… (àmì {} àkọ́kọ́ nínú {}; gbogbo rẹ̀ wà nínú àlàyé)";
    TOOL_UNKNOWN: "The server has not described this tool, so it may change or destroy anything.", "El servidor no ha descrito esta herramienta, así que puede cambiar o destruir cualquier cosa.", "Ẹ̀rọ olùpèsè kò ṣàlàyé irinṣẹ́ yìí, nítorí náà ó lè yí ohunkóhun padà tàbí pa á run.";
    TOOL_UNANNOTATED: "The server does not say what this tool can change, so it may destroy something.", "El servidor no dice qué puede cambiar esta herramienta, así que puede destruir algo.", "Ẹ̀rọ olùpèsè kò sọ ohun tí irinṣẹ́ yìí lè yí padà, nítorí náà ó lè pa nǹkan run.";
    TOOL_DESTRUCTIVE: "The server says that this tool may destroy or overwrite something.", "El servidor dice que esta herramienta puede destruir o sobrescribir algo.", "Ẹ̀rọ olùpèsè sọ pé irinṣẹ́ yìí lè pa nǹkan run tàbí kọ nǹkan mìíràn lé e.";
    TOOL_MODIFYING: "The server says that this tool changes something, but destroys nothing.", "El servidor dice que esta herramienta cambia algo, pero no destruye nada.", "Ẹ̀rọ olùpèsè sọ pé irinṣẹ́ yìí ń yí nǹkan padà, ṣùgbọ́n kì í pa nǹkan run.";
    TOOL_UNTRUSTED: "The server says that this tool only reads, but nobody has confirmed that the server can be trusted.", "El servidor dice que esta herramienta solo lee, pero nadie ha confirmado que se pueda confiar en él.", "Ẹ̀rọ olùpèsè sọ pé kíkà nìkan ni irinṣẹ́ yìí ń ṣe, ṣùgbọ́n kò sí ẹni tó fìdí rẹ̀ múlẹ̀ pé a lè gbẹ́kẹ̀ lé e.";
    TOOL_OPERATOR: "Your trust file says that you want to be asked about this tool.", "Su archivo de confianza dice que usted quiere que se le pregunte por esta herramienta.", "Fáìlì ìgbẹ́kẹ̀lé rẹ sọ pé o fẹ́ kí a bi ọ́ nípa irinṣẹ́ yìí.";
    TOOL_CHANGED: "The description of this tool has changed since it was last allowed, so it may now do something else.", "La descripción de esta herramienta ha cambiado desde que se permitió, así que ahora puede hacer otra cosa.", "Àlàyé irinṣẹ́ yìí ti yí padà láti ìgbà tí a gbà á láyè, nítorí náà ó lè ṣe ohun mìíràn báyìí.";
    TOOL_STOPPED: "You stopped this server's work before. With a yes, it continues.", "Antes usted detuvo el trabajo de este servidor. Con un sí, continúa.", "O ti dá iṣẹ́ ẹ̀rọ olùpèsè yìí dúró tẹ́lẹ̀. Bí o bá sọ pé bẹ́ẹ̀ni, yóò máa bá a lọ.";
    USING: "Using the tool {}.", "Usando la herramienta {}.", "Ó ń lo irinṣẹ́ {}.";
    FINISHED: "It has finished.", "Ha terminado.", "Ó ti parí iṣẹ́.";
    FINISHED_WITH: "It has finished: {}", "Ha terminado: {}", "Ó ti parí iṣẹ́: {}";
    WAS_CANCELLED: "it was cancelled", "se canceló", "a fagi lé e";
    WAS_NOT_MADE: "it was not made, because the agent no longer waited for it", "no se hizo, porque el agente ya no la esperaba", "a kò ṣe é, nítorí pé aṣojú náà kò dúró dè é mọ́";
    END_UNKNOWN: "its end is not known", "no se sabe cómo terminó", "a kò mọ bó ṣe parí";
    EARLIER_YES: "The agent repeats a call that you have allowed. Your earlier yes is used for it now.", "El agente repite una llamada que usted permitió. Ahora se usa su sí anterior.", "Aṣojú náà tún ṣe ohun tí o ti gbà láyè. A ń lo bẹ́ẹ̀ni tí o sọ tẹ́lẹ̀ fún un báyìí.";
    NO_LONGER_WAITS: "The agent no longer waits for {}. A yes counts once, if the agent makes the same call again within {} minutes.", "El agente ya no espera {}. Un sí vale una vez, si el agente repite la misma llamada en {} minutos.", "Aṣojú náà kò dúró de {} mọ́. Bẹ́ẹ̀ni kan ṣoṣo ló wúlò, bí aṣojú náà bá tún ṣe é láàárín ìṣẹ́jú {}.";
    YES_KEPT: "Nobody waits for {} any more. Your yes is kept for {} minutes, for the same call.", "Nadie espera ya {}. Su sí se guarda {} minutos, para la misma llamada.", "Kò sí ẹni tó ń dúró de {} mọ́. A tọ́jú bẹ́ẹ̀ni rẹ fún ìṣẹ́jú {}, fún ohun kan náà.";
    MORE_INPUT: "The agent gives it more input. {}", "El agente le da más datos. {}", "Aṣojú náà fún un ní ohun mìíràn sí i. {}";
    EMPTY_INPUT: "It is empty.", "Está vacío.", "Òfìfo ni.";
    TOO_OFTEN: "{} is used so often at the same time that not every call is announced.", "{} se usa tanto a la vez que no se anuncian todas las llamadas.", "Wọ́n ń lo {} púpọ̀ lẹ́ẹ̀kan náà débi pé a kò kéde gbogbo rẹ̀.";
    DROPPED: "A message to {} was dropped: {}.", "Se descartó un mensaje para {}: {}.", "A ju ìfiránṣẹ́ kan sí {} nù: {}.";
    UNASKED_ANSWER: "Warning: {} answered a call that it has not received. The answer was withheld.", "Aviso: {} respondió a una llamada que no ha recibido. La respuesta se retuvo.", "Ìkìlọ̀: {} dáhùn ohun tí kò tíì gbà. A dá ìdáhùn náà dúró.";
    NEEDS_INFORMATION: "{} needs more information to go on.", "{} necesita más información para continuar.", "{} nílò ìròyìn sí i kó tó lè máa bá a lọ.";
    IN_BACKGROUND: "It goes on in the background. It has not finished yet.", "Continúa en segundo plano. Aún no ha terminado.", "Ó ń bá a lọ lábẹ́lẹ̀. Kò tíì parí.";
    OPEN_PAGE: "The server asks you to open a web page: {}. {} Do you want to?", "El servidor le pide abrir una página web: {}. {} ¿Quiere hacerlo?", "Ẹ̀rọ olùpèsè ní kí o ṣí ojú ewé kan: {}. {} Ṣé o fẹ́?";
    DO_YOU_AGREE: "The server asks: {} Do you agree?", "El servidor pregunta: {} ¿Está de acuerdo?", "Ẹ̀rọ olùpèsè ń béèrè: {} Ṣé o gbà?";
    ANSWER_HERE: "The server asks: {} Do you want to answer here?", "El servidor pregunta: {} ¿Quiere responder aquí?", "Ẹ̀rọ olùpèsè ń béèrè: {} Ṣé o fẹ́ dáhùn níbí?";
    ANSWER_FIELDS_HERE: "The server asks: {} It has {} fields. Do you want to answer here?", "El servidor pregunta: {} Tiene {} campos. ¿Quiere responder aquí?", "Ẹ̀rọ olùpèsè ń béèrè: {} Ó ní apá {}. Ṣé o fẹ́ dáhùn níbí?";
    MCP_SESSION: "An agent uses the tools of the MCP server {}.", "Un agente usa las herramientas del servidor MCP {}.", "Aṣojú kan ń lo irinṣẹ́ ẹ̀rọ olùpèsè MCP {}.";
    MCP_SESSION_ENDED: "The MCP server {} is no longer used.", "El servidor MCP {} ya no se usa.", "Wọn kò lo ẹ̀rọ olùpèsè MCP {} mọ́.";

    // Reports of OpenTelemetry.
    AN_AGENT: "an agent", "un agente", "aṣojú kan";
    REPORTS_ABOUT: "Reports about {}, after the fact. They come when the work is done, so nothing can be asked or stopped.", "Informes sobre {}, a posteriori. Llegan cuando el trabajo ya está hecho, así que no se puede preguntar ni detener nada.", "Ìròyìn nípa {}, lẹ́yìn tí ó ti ṣẹlẹ̀. Wọ́n ń dé lẹ́yìn tí iṣẹ́ ti parí, nítorí náà a kò lè béèrè tàbí dá ohunkóhun dúró.";
    REPORTED: "Reported afterwards: {}", "Informado a posteriori: {}", "A gbọ́ lẹ́yìn tí ó ṣẹlẹ̀: {}";
    REPORTED_FAILURE: "Reported afterwards: {} It failed: {}", "Informado a posteriori: {} Falló: {}", "A gbọ́ lẹ́yìn tí ó ṣẹlẹ̀: {} Ó kùnà: {}";
    REPORTED_USE: "Reported afterwards: {} was used, and nobody was asked here.", "Informado a posteriori: se usó {}, y aquí no se preguntó a nadie.", "A gbọ́ lẹ́yìn tí ó ṣẹlẹ̀: wọ́n lo {}, wọn kò sì bi ẹnikẹ́ni níbí.";
    TOOL_FAILED: "{} failed: {}", "{} falló: {}", "{} kùnà: {}";
    HAS_FINISHED: "{} has finished.", "{} ha terminado.", "{} ti parí.";
    AGENT_HAS_FINISHED: "The agent has finished.", "El agente ha terminado su trabajo.", "Aṣojú náà ti parí iṣẹ́ rẹ̀.";
    AGENT_CREATED: "The agent {} was created.", "Se creó el agente {}.", "A dá aṣojú {} sílẹ̀.";
    NAMELESS_CREATED: "An agent without a name was created.", "Se creó un agente sin nombre.", "A dá aṣojú kan tí kò lórúkọ sílẹ̀.";
    MADE_PLAN: "The agent made a plan.", "El agente hizo un plan.", "Aṣojú náà ṣe ìpète kan.";
    MODEL_ANSWERED: "The model {} answered.", "El modelo {} respondió.", "Módẹ́ẹ̀lì {} dáhùn.";
    A_MODEL_ANSWERED: "The model answered.", "El modelo respondió.", "Módẹ́ẹ̀lì náà dáhùn.";
    STEP_ENDED: "{} ended.", "{} terminó.", "{} parí.";
    NO_FURTHER_REPORTS: "No further reports for {} seconds.", "No hay más informes desde hace {} segundos.", "Kò sí ìròyìn mìíràn fún ìṣẹ́jú-àáyá {}.";
    HUB_STOPS: "The hub stops, so no further reports follow.", "El centro se detiene, así que no habrá más informes.", "Ibùdó ń dúró, nítorí náà kò ní sí ìròyìn mìíràn.";
    TOO_MANY_SESSIONS: "Too many sessions report at the same time, so this one ends.", "Demasiadas sesiones informan a la vez, así que esta termina.", "Ìjókòó tó ń fi ìròyìn ránṣẹ́ pọ̀ jù, nítorí náà èyí parí.";
}
