//! Spanish, as one speaks to somebody whom one does not know.

use super::{Commands, Phrases};

pub(super) static SPANISH: Phrases = Phrases {
    tag: "es",
    commands: Commands {
        yes: &["sí", "aceptar", "acepto"],
        yes_in_short: &["s"],
        no: &["no", "n", "rechazar", "rechazo"],
        answer: &["responder", "respuesta"],
        more_time: &["más tiempo"],
        details: &["detalles"],
        repeat: &["repetir", "repita"],
        status: &["estado"],
        stop: &["parar", "detener"],
        all: &["todo", "todos"],
        quieter: &["menos", "más bajo"],
        louder: &["más alto", "más detalle"],
        hush: &["silencio"],
        faster: &["más rápido"],
        slower: &["más lento", "más despacio"],
        quit: &["salir", "terminar"],
        help: &["ayuda"],
        // "And".
        otherwise: &["y"],
    },
    the_agent: "El agente",
    it: "El agente",
    try_again: "Es probable que funcione si se intenta de nuevo.",
    do_not_try_again: "Intentarlo de nuevo no servirá.",
    you_must_act: "Antes tiene que hacer algo usted.",
    what_you_can_do: "Lo que puede hacer:",
    never_undone: "Esto no se podrá deshacer nunca.",
    the_reason: "El motivo:",
    it_says: "Dice:",
    unknown_type: "desconocido",
    words_missing: "Aquí faltan palabras; no llegaron.",
    no_event: "Llegó algo que no es un evento; se dejó fuera.",
    too_long: "Llegó algo más largo de lo que se puede recibir; se dejó fuera.",
    gap: "Una parte de lo que se dijo en su ausencia ya no se conserva. Sigue lo que vale ahora.",
    wrong_order: "Los eventos de esta sesión llegaron en desorden.",
    hub_lets_go: "Llegó más de lo que se podía recibir aquí, así que el centro cortó.",
    hub_stops: "El centro se está deteniendo.",
    hub_replaces: "Ahora escucha otra conexión en lugar de esta.",
    hub_forgets_token: "El centro ya no conoce su token, así que no le deja entrar.",
    hub_ends: "El centro ha terminado la suscripción.",
    what_it_would_do: "Lo que haría:",
    what_follows: "Lo que resulta de ello:",
    why_it_asks: "Por qué quiere saberlo:",
    risk_low: "El riesgo es bajo",
    risk_medium: "El riesgo es medio",
    risk_high: "El riesgo es alto",
    risk_unsaid: "El agente no dice cuánto riesgo hay",
    without_answer_done: "Sin respuesta, se hace.",
    without_answer_not_done: "Sin respuesta, no se hace.",
    without_answer_this: "Sin respuesta, el agente toma esto:",
    without_answer_on: "Sin respuesta, el agente sigue sin ella.",
    is_recording: "Esto es una grabación: ya no se puede responder.",
    answer_grave: "Escriba la palabra entera aceptar o sí para permitirlo, o rechazar o no para impedirlo.",
    answer_light: "Escriba sí o 1 para permitirlo, no o 2 para impedirlo.",
    answer_only_yes: "Solo se admite un sí. Escriba aceptar o sí para permitirlo.",
    answer_only_no: "Solo se admite un no. Escriba rechazar o no para impedirlo.",
    way_choice: "el número de una opción",
    way_yes_no: "sí o no",
    way_number: "un número",
    way_words: "su respuesta con sus propias palabras",
    no_way: "No admite ninguna respuesta que se pueda escribir aquí.",
    not_answered_here: "Esto no se puede responder aquí:",
    not_open: "No hay ninguna pregunta abierta con ese número.",
    answered_twice: "Ya la ha respondido.",
    not_taken: "No admite esa respuesta.",
    not_connected: "No hay conexión, así que su respuesta no se envió.",
    no_more_time: "Tiene ya todo el tiempo que puede tener.",
    more_time_asked: "Ha pedido más tiempo.",
    was_accepted: "aceptada",
    was_rejected: "rechazada",
    was_in_words: "con palabras",
    outcome_accept: "se puede hacer",
    outcome_reject: "no se hace",
    outcome_other: "el agente sigue",
    yes: "sí",
    no: "no",
    more_time: "más tiempo",
    no_hub_for_that: "Este agente no tiene un centro, que es lo único que podría hacer eso. No se envió nada.",
    none_open: "No hay ninguna pregunta abierta. No se envió nada.",
    none_such_open: "Esa pregunta no está abierta.",
    one_or_two: "Escriba 1 para sí o 2 para no. No se envió nada.",
    not_understood: "Eso no se entendió. Escriba ayuda para saber qué puede escribir.",
    stopped_listening: "Ha dejado de escuchar.",
    agent_goes_on: "El agente sigue.",
    agents_go_on: "Los agentes siguen.",
    nobody_at_work: "Ningún agente está trabajando.",
    has_not_said: "No ha dicho lo que hace.",
    nothing_stopped: "No hay conexión, así que no se paró nada.",
    hears_least: "Ya oye lo mínimo que hay.",
    hears_all: "Ya oye todo lo que hay.",
    terse: "breves",
    normal: "normales",
    detailed: "detallados",
    help_decide: "sí o aceptar, no o rechazar: responde a la pregunta abierta. Si hay varias, ponga el número detrás: sí 2.",
    help_answer: "responder y unas palabras: responde a una pregunta que pide palabras. responder 2 y unas palabras: responde a la pregunta 2.",
    help_repeat: "repetir: dice otra vez las preguntas abiertas. detalles: dice todo lo que se sabe de ellas.",
    help_more_time: "más tiempo: da a una pregunta otra vez el mismo tiempo.",
    help_stop: "parar: para al agente. Si trabajan varios, ponga detrás el número de la sesión: parar 2.",
    help_status: "estado: dice quién trabaja y qué está abierto.",
    help_louder: "más bajo, más alto: se dice menos o más.",
    help_quit: "salir: deja de escuchar.",
    help_hush: "Enter solo: corta lo que se está diciendo. silencio: corta también lo que espera, salvo lo urgente.",
    help_pace: "más rápido, más lento: cambia la velocidad de la voz.",
    help_requests: "Todo lo demás se toma por lo que usted quiere que haga el asistente.",
    again_resumed: "Hay conexión de nuevo.",
    again_not_kept: "Hay conexión de nuevo, pero lo que se dijo mientras tanto no se guardó para usted.",
    meanwhile_follows: "Sigue lo que se dijo mientras tanto.",
    now_follows: "Sigue lo que vale ahora.",
    nothing_meanwhile: "Mientras tanto no se dijo nada.",
    status_lost: "Ahora no hay conexión; se intenta de nuevo. Así estaban las cosas antes:",
    in_the_clear: "La conexión no está cifrada: otros en el camino pueden oír y cambiar lo que se dice. Use https.",
    no_hub: "Este es un agente solo, sin centro: desde aquí no se le puede parar ni pedir más tiempo, y lo que se dice sin conexión se pierde.",
    asked_too_much: "Se pidió demasiado de una vez. Pídalo de nuevo dentro de un momento.",
    auto_none: "Con --auto none no se responde a nada. No se envió nada.",
    auto_accepts: "con --auto accept se permite todo sin una persona",
    auto_rejects: "con --auto reject se rechaza todo sin una persona",
    auto_is_silent: "con --auto none no se responde a ninguna pregunta",
    nothing_spoken: "Aquí no se habla en voz alta.",
    nothing_said: "No se está diciendo nada.",
    silence: "Silencio. Lo que se iba a decir está escrito más arriba.",
    pace_ends: "Por ese lado no se puede ir más allá.",
    one_left_out: "Un anuncio anterior no se dijo, porque llegaron más de los que se podían decir.",
    why_nothing_listens: "allí no escucha nadie",
    why_cut: "la conexión se cortó",
    why_silent: "no responde",
    why_hung_up: "colgó sin responder",
    why_hung_up_within: "colgó a mitad de la respuesta",
    why_not_http: "su respuesta no es HTTP",
    why_speaks_tls: "habla TLS; escriba https:// en lugar de http://",
    why_no_tls: "no habla TLS; escriba http:// en lugar de https://",
    why_untrusted: "su certificado no lo firmó nadie en quien confíe esta máquina; dé el certificado de quien lo firmó con --ca",
    why_other_name: "su certificado es para otro nombre",
    why_out_of_date: "su certificado no vale en este momento; mire el reloj de aquí, o pida un certificado nuevo",
    why_of_signer: "su certificado es para firmar otros y no para una máquina; hay que hacerlo con CA:FALSE",
    why_not_text: "su respuesta no es UTF-8",
    why_too_long: "su respuesta es demasiado larga",
    why_forgotten: "el centro ha olvidado la suscripción",
    why_ended: "el centro ha terminado la conexión",
    why_lifeless: "el centro no da señales de vida",
    why_no_host: "eso no es el nombre de una máquina",
    why_no_unix: "aquí no hay sockets de Unix",
    why_token_form: "un token es texto sin formato",
    why_no_hub: "No hay ningún centro en esta dirección.",
    why_token_wanted: "El centro quiere un token que conozca. Dele uno con --token-file o en SAYSO_TOKEN.",
    why_token_ended: "El centro ya no deja entrar con este token.",
    why_replaced: "Otra conexión escucha en lugar de esta.",
    refused_token: "El centro no deja escuchar con este token.",
    refused_version: "El centro habla otra versión de AAEP.",
    refused_no_room: "El centro no tiene sitio ahora para otro oyente.",
    refused_wish: "El centro no puede dar lo que se pidió.",
    refused_manifest: "El centro no tiene un manifiesto firmado.",
    refused_now: "El centro no admite oyentes ahora.",
    refused: "El centro ha rechazado la suscripción.",
    not_trusted: "El centro no es quien debería ser, así que solo se le envía un no. Escriba estado para oír por qué.",
    manifest_absent: "El centro no tiene ningún manifiesto que diga quién es.",
    manifest_elsewhere: "No se sabe quién es el centro: dice que su manifiesto está en otro sitio, y allí no se busca.",
    manifest_not_understood: "No se sabe quién es el centro: su manifiesto no se entendió.",
    fault_signature: "su manifiesto no está firmado con una clave en la que usted confía",
    fault_no_longer: "su manifiesto estaba firmado antes, y ahora no",
    only_no: "Solo se le envía un no.",
    only_proven: "Solo se debe escuchar a un centro que pueda demostrar quién es.",
    asked_for_less: "Se le volvió a pedir, pero menos.",
    not_every_question: "El centro no le deja responder a todas las preguntas desde aquí.",
    speech_bad_address: "SPEECHD_ADDRESS no nombra ni un unix_socket ni un inet_socket",
    kind_session: "sesión",
    kind_agent: "agente",
    kind_progress: "progreso",
    kind_tool: "herramienta",
    kind_ask: "pregunta",
    kind_answer: "respuesta",
    kind_error: "fallo",
    kind_handoff: "traspaso",
    kind_notice: "aviso",
    kind_status: "estado",
    kind_help: "ayuda",

    session_began: |agent| format!("{agent} ha empezado."),
    session_done: |agent| format!("{agent} ha terminado."),
    session_failed: |agent| format!("{agent} ha fallado."),
    session_stopped_by_person: |agent| format!("Una persona ha parado a {agent}."),
    session_stopped_itself: |agent| format!("{agent} se ha parado por su cuenta."),
    session_stopped_by_time: |agent| format!("{agent} se paró porque se acabó su tiempo."),
    session_stopped: |agent| format!("{agent} se paró."),
    session_over: |agent| format!("{agent} ha acabado. No se oyó cómo."),
    in_session: |number| format!("En la sesión {number}:"),
    state_idle: |agent| format!("{agent} no hace nada ahora."),
    state_thinking: |agent| format!("{agent} está pensando."),
    state_calling: |agent| format!("{agent} está usando una herramienta."),
    state_writing: |agent| format!("{agent} está escribiendo."),
    state_waiting: |agent| format!("{agent} espera una respuesta."),
    state_deciding: |agent| format!("{agent} está decidiendo qué hacer."),
    state_handing_off: |agent| format!("{agent} está traspasando el trabajo."),
    state_other: |agent, state| format!("{agent} está en un estado llamado {state}."),
    tool_done: |tool| format!("La herramienta {tool} ha terminado."),
    tool_failed: |tool| format!("La herramienta {tool} ha fallado."),
    tool_took_too_long: |tool| format!("La herramienta {tool} tardó demasiado."),
    tool_ended: |tool| format!("La herramienta {tool} se ha cerrado."),
    step_of: |step, total| format!("Paso {step} de {total}."),
    step: |step| format!("Paso {step}."),
    percent: |percent| format!("{percent} por ciento."),
    hands_to_person: |agent| format!("{agent} no puede seguir sin ayuda y pasa el trabajo a una persona."),
    hands_to_agent: |agent| format!("{agent} no puede seguir sin ayuda y pasa el trabajo a otro agente."),
    hands_to_queue: |agent| {
        format!("{agent} no puede seguir sin ayuda y pasa el trabajo a una cola donde alguien lo tomará.")
    },
    hands_to_somebody: |agent| format!("{agent} no puede seguir sin ayuda y pasa el trabajo a alguien más."),
    sent_data: |agent, kind| format!("{agent} ha enviado datos del tipo {kind}."),
    sent_malformed: |agent, kind| format!("{agent} envió un {kind} que no se pudo entender."),
    sent_unknown: |agent, kind| format!("{agent} envió un {kind}, que aquí no se conoce."),
    not_understood_type: |kind| format!("Llegó algo del tipo {kind} que no se pudo entender."),
    hub_ends_because: |reason| format!("El centro ha terminado la suscripción: {reason}."),
    question_asks: |number, agent| format!("Pregunta {number}, de {agent}:"),
    question_from: |number, agent| format!("Pregunta {number}, de {agent}."),
    choice: |number| format!("Opción {number}:"),
    undone_never: |risk| format!("{risk}, y no se podrá deshacer nunca."),
    undone_hardly: |risk| format!("{risk}, y es difícil de deshacer."),
    undone_easily: |risk| format!("{risk}. Se puede deshacer."),
    undone_unsaid: |risk| format!("{risk}. No se dice si se puede deshacer."),
    agent_adds: |what| format!("El agente añade: {what}"),
    you_have: |left| format!("Tiene {left}."),
    there_were: |time| format!("Había {time} para responder."),
    type_only: |way| format!("Escriba {way}."),
    type_or: |ways, last| format!("Escriba {ways}, o {last}."),
    several_open: |count| format!("Hay {count} preguntas abiertas."),
    answer_grave_to: |number| {
        format!(
            "Escriba las palabras enteras aceptar {number} o sí {number} para permitir esto, o rechazar {number} o no {number} para impedirlo."
        )
    },
    answer_light_to: |number| {
        format!("Escriba sí {number} para permitir esto, o no {number} para impedirlo.")
    },
    answer_only_yes_to: |number| {
        format!("Solo se admite un sí. Escriba aceptar {number} o sí {number} para permitir esto.")
    },
    answer_only_no_to: |number| {
        format!("Solo se admite un no. Escriba rechazar {number} o no {number} para impedir esto.")
    },
    type_only_to: |number, way| format!("Escriba responder {number} y {way}."),
    type_or_to: |number, ways, last| format!("Escriba responder {number} y {ways}, o {last}."),
    seconds: |count| many(count, "segundo"),
    minutes: |count| many(count, "minuto"),
    hours: |count| many(count, "hora"),
    reminder: |left, number| {
        format!("Tiempo restante para la pregunta {number}: {left}. Escriba más tiempo si lo necesita.")
    },
    asks_too_much: |agent| format!("{agent} pregunta más de lo que se puede tener abierto aquí."),
    came_again: |number| {
        format!("La pregunta {number} llegó otra vez con otras palabras. Aquí valen las primeras.")
    },
    asked_settled: |agent| format!("{agent} preguntó algo que ya está decidido."),
    was_answered: |number, how| format!("La pregunta {number} fue respondida: {how}."),
    counted: |number, outcome| format!("La respuesta a la pregunta {number} valió: {outcome}."),
    yours_counts: |number, outcome| format!("Su respuesta a la pregunta {number} vale: {outcome}."),
    answered_elsewhere: |number, outcome| {
        format!("La pregunta {number} se respondió en otro lugar: {outcome}.")
    },
    too_late: |number, outcome| {
        format!("Otra persona respondió antes a la pregunta {number}: {outcome}. Su respuesta llegó tarde.")
    },
    nobody_in_time: |number, outcome| format!("Nadie respondió a tiempo a la pregunta {number}: {outcome}."),
    nobody_left: |number, outcome| {
        format!("No quedó nadie para responder a la pregunta {number}: {outcome}.")
    },
    nobody_reached: |number, outcome| format!("No se pudo hacer a nadie la pregunta {number}: {outcome}."),
    withdrawn: |number, outcome| format!("La pregunta {number} se ha retirado: {outcome}."),
    settled: |number, outcome| format!("La pregunta {number} está decidida: {outcome}."),
    closed_goes_on: |number, agent| format!("La pregunta {number} está cerrada: {agent} sigue."),
    yours_was_taken: |number| format!("Su respuesta a la pregunta {number} se ha recibido."),
    closed_without_you: |number, agent| {
        format!("La pregunta {number} está cerrada: {agent} sigue sin su respuesta.")
    },
    withdrawn_with_session: |number| {
        format!("La pregunta {number} se ha retirado, porque su sesión ha terminado.")
    },
    unheard: |number| format!("La pregunta {number} ya no está abierta. No se oyó qué fue de ella."),
    time_over: |number| format!("Se acabó el tiempo para la pregunta {number}."),
    list: |numbers, last| format!("{numbers} y {last}"),
    enter_one_open: |number, left| {
        format!(
            "Enter solo no responde a nada. La pregunta {number} sigue abierta {left}; escriba repetir para oírla."
        )
    },
    enter_several_open: |count, numbers| {
        format!("Enter solo no responde a nada. Hay {count} preguntas abiertas: {numbers}.")
    },
    question_not_open: |number| format!("La pregunta {number} no está abierta. No se envió nada."),
    has_just_changed: |number, typed| {
        format!(
            "Lo que está abierto acaba de cambiar, así que no se envió nada. Está abierta la pregunta {number}; ponga su número detrás, así: {typed} {number}."
        )
    },
    which_question: |numbers, typed, number| {
        format!(
            "¿Qué pregunta quiere decir? No se envió nada. Están abiertas {numbers}. Ponga el número detrás, así: {typed} {number}."
        )
    },
    not_an_answer: |how| {
        format!(
            "Eso no se tomó como respuesta, y no se envió nada. {how} Escriba repetir para oír otra vez la pregunta, o ayuda."
        )
    },
    not_an_answer_to_several: |numbers, number| {
        format!(
            "Eso no se tomó como respuesta, y no se envió nada. Están abiertas las preguntas {numbers}. Escriba sí o no y el número, así: no {number}. Escriba repetir para oírlas otra vez, o ayuda."
        )
    },
    stays_unanswered: |number| format!("La pregunta {number} queda sin su respuesta."),
    stay_unanswered: |numbers| format!("Las preguntas {numbers} quedan sin su respuesta."),
    too_short: |number| {
        format!(
            "Esto no se puede deshacer, o podría hacer daño, así que no basta una respuesta corta. No se envió nada. Escriba la palabra entera aceptar para permitir la pregunta {number}, o no para impedirla."
        )
    },
    you_say: |word, number| format!("Usted dice {word} a la pregunta {number}."),
    you_answer: |number, text| format!("Usted responde a la pregunta {number}: {text}"),
    does_not_take: |number, how| format!("La pregunta {number} no admite eso. {how}"),
    question_trouble: |number, why| format!("Pregunta {number}: {why}"),
    more_time_had: |number, left| {
        format!("Hay más tiempo para la pregunta {number}. Sigue abierta ahora {left}.")
    },
    more_time_was_given: |number| format!("Se dio más tiempo para la pregunta {number}."),
    more_time_not_given: |number, left| {
        format!("El centro no ha dado más tiempo para la pregunta {number}. Sigue abierta {left}.")
    },
    session_does: |number, agent, doing| format!("Sesión {number}, {agent}. {doing}"),
    began_with: |about| format!("Empezó con: {about}"),
    is_answered: |number| format!("La pregunta {number} está respondida; aún no se sabe qué será de ella."),
    is_open: |number, agent, left| format!("La pregunta {number} de {agent} está abierta {left}."),
    you_hear: |much| format!("Oye textos {much}."),
    you_will_hear: |much| format!("Desde ahora oye textos {much}."),
    no_such_session: |number| format!("No hay ninguna sesión {number} en marcha."),
    session_is: |number, agent| format!("la {number} es {agent}"),
    session_is_about: |number, agent, about| format!("la {number} es {agent}: {about}"),
    which_session: |sessions| {
        format!("¿Cuál? {sessions}. Escriba parar y el número, o parar todo. No se paró nada.")
    },
    you_stop: |agent, number| format!("Usted para a {agent}, sesión {number}."),
    listening: |url| format!("Escuchando a {url}. Escriba ayuda para saber qué puede escribir."),
    listening_only: |url| format!("Escuchando a {url}."),
    hub_says: |what| format!("El centro dice: {what}"),
    lost: |why| {
        format!("Se perdió la conexión con el centro: {why}. Se intenta de nuevo hasta que funcione.")
    },
    still_open: |number, agent, left| {
        format!("La pregunta {number} de {agent} sigue abierta {left}. Escriba repetir para oírla.")
    },
    several_still_open: |count| format!("Siguen abiertas {count} preguntas. Escriba repetir para oírlas."),
    cannot_reach: |url, why| format!("no se puede llegar a {url}: {why}"),
    answer_not_sent: |number, why| {
        format!("Su respuesta a la pregunta {number} no llegó: {why}. Sigue abierta; responda otra vez.")
    },
    wish_not_sent: |why| format!("Lo que pidió no llegó al centro: {why}. Inténtelo de nuevo."),
    pace: |pace| format!("Desde ahora la velocidad es {pace}."),
    auto_answered: |number, word| format!("Sin una persona, la pregunta {number} se responde: {word}."),
    auto_not_answered: |number| {
        format!("La pregunta {number} no se puede responder sin una persona; se le acaba el tiempo.")
    },
    urgent_left_out: |count| {
        format!(
            "Llegaron {count} anuncios urgentes más de los que se pueden decir. Escriba estado para oír qué está abierto."
        )
    },
    left_out: |count| {
        format!("{count} anuncios anteriores no se dijeron, porque llegaron más de los que se podían decir.")
    },
    why_answered: |status| format!("el centro respondió {status}"),
    why_no_hub_answered: |status| format!("No hay ningún centro en esta dirección: respondió {status}."),
    try_again_in: |seconds| format!("Inténtelo de nuevo dentro de {seconds} segundos."),
    hub_proven: |agent| {
        format!("El centro es {agent}: su manifiesto está firmado con una clave en la que usted confía.")
    },
    hub_unsigned: |agent| {
        format!("El centro se llama a sí mismo {agent}, pero su manifiesto no está firmado.")
    },
    hub_claims: |agent| {
        format!("El centro se llama a sí mismo {agent}; no se dio ninguna clave para comprobarlo.")
    },
    manifest_unread: |why| {
        format!("No se sabe quién es el centro: su manifiesto no se pudo obtener, porque {why}.")
    },
    hub_wrong: |why| format!("El centro no es quien debería ser: {why}."),
    fault_agent: |manifest, offer| {
        format!("su manifiesto es el de {manifest}, pero quien responde es {offer}")
    },
    fault_level: |level| format!("su manifiesto no declara el nivel {level}, que sin embargo ofrece"),
    fault_claim: |what| format!("su manifiesto no declara {what}, que sin embargo ofrece"),
    rate_lowered: |rate| {
        format!(
            "Como llegó más de lo que se podía recibir aquí, ahora se piden al centro {rate} eventos por segundo como mucho. Los urgentes no esperan."
        )
    },
    rate_given: |rate| format!("El centro da {rate} eventos por segundo como mucho."),
    too_many: |rate| {
        format!(
            "Llegan más que los {rate} eventos por segundo acordados. Lo que no es urgente espera su turno."
        )
    },
    speech_no_folder: |name| format!("no se encuentra {name} sin XDG_RUNTIME_DIR o SPEECHD_ADDRESS"),
    speech_not_installed: |name| format!("{name} no está instalado"),
    speech_does_not_run: |name| format!("{name} no funciona"),
    speech_does_not_start: |name| format!("{name} no arranca"),
    speech_did_not_start: |name| format!("{name} no estaba en marcha y no arrancó"),
    speech_elsewhere: |name| format!("{name} está en otro lugar"),
    speech_no_answer: |name| format!("{name} no responde"),
    speech_not_understood: |name| format!("{name} dice algo que no se entiende"),
    speech_ended: |name| format!("{name} ha terminado"),
    speech_not_taken: |name| format!("{name} no acepta lo que hay que decir"),
    speech_no_sound: |name| format!("{name} no produce sonido"),
    speech_cannot: |name| format!("{name} no puede hablar"),
    speech_refuses: |name, what| format!("{name} rechaza {what}"),
    speech_unreachable: |name, why| format!("no se puede llegar a {name} ({why})"),
    speech_cannot_start: |name, why| format!("{name} no se puede arrancar ({why})"),
    speech_gone: |name, why| format!("{name} ha desaparecido ({why})"),
    speech_fails: |name, why| format!("{name} no puede hablar ({why})"),
    speech_none: |dispatcher, espeak| {
        format!(
            "Aquí no se puede hablar en voz alta: {dispatcher}, y {espeak}. En Debian, instale los paquetes speech-dispatcher y speech-dispatcher-espeak-ng, o solo espeak-ng. Lo que se dice solo se escribe."
        )
    },
    speech_reached_again: |why| format!("Voz: {why}. Ya responde otra vez."),
    speech_goes_on: |why, name| format!("Voz: {why}. Desde ahora habla {name}."),
    speech_both_end: |why, also| format!("Voz: {why}, y {also}. Desde ahora no se habla, solo se escribe."),
    speech_ends: |why| format!("Voz: {why}. Desde ahora no se habla, solo se escribe."),
};

fn many(count: i64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
