//! Recorded sound: where it is silent, and where something in it sounds like something else.

/// Samples in a second.
pub(crate) const RATE: usize = 16_000;
/// Samples of a frame, a hundredth of a second.
const FRAME: usize = RATE / 100;
/// Softer than this is silence.
const SOFT: i16 = 60;

#[derive(Clone, Copy)]
pub(crate) struct Tape<'s>(pub(crate) &'s [i16]);

impl<'s> Tape<'s> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn from(self, position: usize) -> Self {
        Self(self.0.get(position..).unwrap_or_default())
    }

    pub(crate) fn is_silent(self) -> bool {
        self.0.iter().all(|sample| sample.unsigned_abs() < SOFT.unsigned_abs())
    }

    /// Without the silence at its ends.
    pub(crate) fn trimmed(self) -> &'s [i16] {
        let loud = |sample: &i16| sample.unsigned_abs() >= SOFT.unsigned_abs();
        let from = self.0.iter().position(loud).unwrap_or(0);
        let to = self.0.iter().rposition(loud).map_or(0, |last| last + 1);
        self.0.get(from..to).unwrap_or_default()
    }

    /// How many samples of it are in frames that are not silent.
    pub(crate) fn sounding(self) -> usize {
        self.0.chunks(FRAME).filter(|frame| !Tape(frame).is_silent()).map(<[i16]>::len).sum()
    }

    /// For each frame how loud it is, and how loud its high tones are.
    fn shape(self) -> Vec<[f64; 2]> {
        let power = |samples: &mut dyn Iterator<Item = f64>| {
            samples.map(|sample| sample * sample).sum::<f64>().sqrt()
        };
        let of = |frame: &[i16]| {
            let steps = &mut frame.windows(2).map(|pair| f64::from(pair[1]) - f64::from(pair[0]));
            [power(&mut frame.iter().map(|sample| f64::from(*sample))), power(steps)]
        };
        self.0.chunks_exact(FRAME).map(of).collect()
    }

    /// Where it sounds most like this, and how much: 1 is the same. In samples.
    pub(crate) fn find(self, sound: &[i16]) -> (usize, f64) {
        let (here, sound) = (self.shape(), Tape(sound).shape());
        let likeness = |at: &usize| {
            let piece = &here[*at..*at + sound.len()];
            (0..2).map(|band| likeness(piece, &sound, band)).sum::<f64>() / 2.0
        };
        let last = here.len().saturating_sub(sound.len());
        let best = (0..last).max_by(|one, other| likeness(one).total_cmp(&likeness(other))).unwrap_or(0);
        (best * FRAME, if last == 0 { 0.0 } else { likeness(&best) })
    }
}

/// The correlation of two shapes.
#[allow(clippy::cast_precision_loss, reason = "frames are few")]
fn likeness(one: &[[f64; 2]], other: &[[f64; 2]], band: usize) -> f64 {
    let mean = |shape: &[[f64; 2]]| shape.iter().map(|frame| frame[band]).sum::<f64>() / shape.len() as f64;
    let (mean_one, mean_other) = (mean(one), mean(other));
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one[band] - mean_one, other[band] - mean_other);
        both += one * other;
        first += one * one;
        second += other * other;
    }
    if first * second > 0.0 { both / (first * second).sqrt() } else { 0.0 }
}
