//! The demonstration account, read with and without success.

use crate::demo::language::{Line, Phrase, line, phrase};

pub(in crate::demo) const LOOKING: Phrase = phrase! {
    "Looking up.", "Looking up the balance of the demonstration account.", "Looking up the balance of the demonstration account. This changes nothing.";
    "Consultando.", "Consultando el saldo de la cuenta de demostración.", "Consultando el saldo de la cuenta de demostración. Esto no cambia nada.";
    "Mo ń wò ó.", "Mo ń wo iye owó inú àkántì àfihàn.", "Mo ń wo iye owó inú àkántì àfihàn. Èyí kò yí ohunkóhun padà.";
};

pub(in crate::demo) const LOOKING_AT_IT: Phrase = phrase! {
    "One of one.", "Step one of one.", "Step one of one: looking at the demonstration account.";
    "Uno de uno.", "Paso uno de uno.", "Paso uno de uno: mirando la cuenta de demostración.";
    "Ọ̀kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan: mo ń wo àkántì àfihàn.";
};

pub(in crate::demo) const LOOKED: Phrase = phrase! {
    "Found.", "The balance was found.", "The balance of the demonstration account was found.";
    "Encontrado.", "Se encontró el saldo.", "Se encontró el saldo de la cuenta de demostración.";
    "Mo rí i.", "Mo rí iye owó náà.", "Mo rí iye owó inú àkántì àfihàn.";
};

pub(in crate::demo) const BALANCE: Line = line(
    "The demonstration account holds 1250 euros; no real bank was asked.",
    "La cuenta de demostración tiene 1250 euros; no se preguntó a ningún banco real.",
    "Yúrò 1250 ló wà nínú àkántì àfihàn; a kò béèrè lọ́wọ́ báńkì gidi kankan.",
);

pub(in crate::demo) const LOOKED_IN_VAIN: Phrase = phrase! {
    "Not found.", "The balance could not be read.", "The balance of the demonstration account could not be read.";
    "No encontrado.", "No se pudo leer el saldo.", "No se pudo leer el saldo de la cuenta de demostración.";
    "N kò rí i.", "N kò lè ka iye owó náà.", "N kò lè ka iye owó inú àkántì àfihàn.";
};

pub(in crate::demo) const NO_ANSWER: Line = line(
    "The demonstration account did not answer, as you asked.",
    "La cuenta de demostración no respondió, como ha pedido.",
    "Àkántì àfihàn kò dáhùn, bí o ṣe béèrè.",
);

pub(in crate::demo) const FAILED: Phrase = phrase! {
    "It failed.", "Looking up the balance failed, as you asked. Nothing was changed.", "Looking up the balance of the demonstration account failed, as you asked. Nothing was changed, and it may be tried again.";
    "Falló.", "La consulta del saldo falló, como ha pedido. No se cambió nada.", "La consulta del saldo de la cuenta de demostración falló, como ha pedido. No se cambió nada, y se puede intentar de nuevo.";
    "Ó kùnà.", "Wíwo iye owó kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà.", "Wíwo iye owó inú àkántì àfihàn kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà, a sì lè tún gbìyànjú.";
};

pub(in crate::demo) const TRY_AGAIN: Line = line(
    "Ask for the balance to see the same call succeed.",
    "Pida el saldo para ver la misma llamada con éxito.",
    "Béèrè iye owó láti rí i pé ó ṣe é ṣe.",
);
