//! Recorded audio: silence detection and a search for a known sound.

/// Samples per second.
pub(crate) const SAMPLE_RATE: usize = 16_000;
/// Samples per frame, which lasts a hundredth of a second.
const FRAME_SAMPLES: usize = SAMPLE_RATE / 100;
/// Amplitudes below this count as silence.
const SILENCE_THRESHOLD: i16 = 60;

#[derive(Clone, Copy)]
pub(crate) struct AudioSamples<'s>(pub(crate) &'s [i16]);

impl<'s> AudioSamples<'s> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the samples from this position on.
    pub(crate) fn skip(self, position: usize) -> Self {
        Self(self.0.get(position..).unwrap_or_default())
    }

    pub(crate) fn is_silent(self) -> bool {
        self.0.iter().all(|sample| sample.unsigned_abs() < SILENCE_THRESHOLD.unsigned_abs())
    }

    /// Returns the samples without the silence at both ends.
    pub(crate) fn trimmed(self) -> &'s [i16] {
        let is_audible = |sample: &i16| sample.unsigned_abs() >= SILENCE_THRESHOLD.unsigned_abs();
        let from = self.0.iter().position(is_audible).unwrap_or(0);
        let to = self.0.iter().rposition(is_audible).map_or(0, |last| last + 1);
        self.0.get(from..to).unwrap_or_default()
    }

    /// Returns the number of samples in frames that are not silent.
    pub(crate) fn count_audible_samples(self) -> usize {
        self.0.chunks(FRAME_SAMPLES).filter(|frame| !AudioSamples(frame).is_silent()).map(<[i16]>::len).sum()
    }

    /// Returns the loudness of each frame, overall and of its high frequencies.
    fn loudness_profile(self) -> Vec<[f64; 2]> {
        let magnitude = |samples: &mut dyn Iterator<Item = f64>| {
            samples.map(|sample| sample * sample).sum::<f64>().sqrt()
        };
        let measure = |frame: &[i16]| {
            let differences = &mut frame.windows(2).map(|pair| f64::from(pair[1]) - f64::from(pair[0]));
            [magnitude(&mut frame.iter().map(|sample| f64::from(*sample))), magnitude(differences)]
        };
        self.0.chunks_exact(FRAME_SAMPLES).map(measure).collect()
    }

    /// Returns the position of the best match, in samples, and its similarity. 1 means identical.
    pub(crate) fn find(self, sound: &[i16]) -> (usize, f64) {
        let (recorded, sound) = (self.loudness_profile(), AudioSamples(sound).loudness_profile());
        let similarity = |at: &usize| {
            let section = &recorded[*at..*at + sound.len()];
            (0..2).map(|band| correlation(section, &sound, band)).sum::<f64>() / 2.0
        };
        let last = recorded.len().saturating_sub(sound.len());
        let best = (0..last).max_by(|one, other| similarity(one).total_cmp(&similarity(other))).unwrap_or(0);
        (best * FRAME_SAMPLES, if last == 0 { 0.0 } else { similarity(&best) })
    }
}

/// Returns the correlation of two loudness profiles in one band.
#[allow(clippy::cast_precision_loss, reason = "the number of frames is small")]
fn correlation(one: &[[f64; 2]], other: &[[f64; 2]], band: usize) -> f64 {
    let mean =
        |profile: &[[f64; 2]]| profile.iter().map(|frame| frame[band]).sum::<f64>() / profile.len() as f64;
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
