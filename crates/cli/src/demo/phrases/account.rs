//! Looking up the balance of the demo account, successfully or not.

use crate::demo::language::{Phrase, TranslatedText, phrase, translated};

pub(in crate::demo) const LOOKUP_STARTED: Phrase = phrase! {
    "Looking up.", "Looking up the balance of the demo account.", "Looking up the balance of the demo account. This changes nothing.";
    "Consultando.", "Consultando el saldo de la cuenta de demostración.", "Consultando el saldo de la cuenta de demostración. Esto no cambia nada.";
    "Mo ń wò ó.", "Mo ń wo iye owó inú àkántì àfihàn.", "Mo ń wo iye owó inú àkántì àfihàn. Èyí kò yí ohunkóhun padà.";
};

pub(in crate::demo) const LOOKUP_RUNNING: Phrase = phrase! {
    "One of one.", "Step one of one.", "Step one of one: reading the demo account.";
    "Uno de uno.", "Paso uno de uno.", "Paso uno de uno: mirando la cuenta de demostración.";
    "Ọ̀kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan: mo ń wo àkántì àfihàn.";
};

pub(in crate::demo) const LOOKUP_DONE: Phrase = phrase! {
    "Found.", "The balance was found.", "The balance of the demo account was found.";
    "Encontrado.", "Se encontró el saldo.", "Se encontró el saldo de la cuenta de demostración.";
    "Mo rí i.", "Mo rí iye owó náà.", "Mo rí iye owó inú àkántì àfihàn.";
};

pub(in crate::demo) const BALANCE: TranslatedText = translated(
    "The demo account holds 1250 euros; no real bank was contacted.",
    "La cuenta de demostración tiene 1250 euros; no se contactó con ningún banco real.",
    "Yúrò 1250 ló wà nínú àkántì àfihàn; a kò béèrè lọ́wọ́ báńkì gidi kankan.",
);

pub(in crate::demo) const LOOKUP_FAILED: Phrase = phrase! {
    "Not found.", "The balance could not be read.", "The balance of the demo account could not be read.";
    "No encontrado.", "No se pudo leer el saldo.", "No se pudo leer el saldo de la cuenta de demostración.";
    "N kò rí i.", "N kò lè ka iye owó náà.", "N kò lè ka iye owó inú àkántì àfihàn.";
};

pub(in crate::demo) const NO_ANSWER: TranslatedText = translated(
    "As you asked, the demo account did not respond.",
    "La cuenta de demostración no respondió, como ha pedido.",
    "Àkántì àfihàn kò dáhùn, bí o ṣe béèrè.",
);

pub(in crate::demo) const FAILED: Phrase = phrase! {
    "It failed.", "Reading the balance failed, as you asked. Nothing was changed.", "Reading the balance of the demo account failed, as you asked. Nothing was changed, and you can try again.";
    "Falló.", "La lectura del saldo falló, como ha pedido. No se cambió nada.", "La lectura del saldo de la cuenta de demostración falló, como ha pedido. No se cambió nada, y se puede intentar de nuevo.";
    "Ó kùnà.", "Wíwo iye owó kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà.", "Wíwo iye owó inú àkántì àfihàn kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà, a sì lè tún gbìyànjú.";
};

pub(in crate::demo) const TRY_AGAIN: TranslatedText = translated(
    "Ask for the balance to hear it work.",
    "Pida el saldo para oír cómo funciona.",
    "Béèrè iye owó láti rí i pé ó ṣe é ṣe.",
);
