//! Trust levels.

seal::string_enum! {
    /// A trust level, from 0 to 4. npayload names levels 1 to 4; the name of level 0 is ours (D25).
    TrustLevel {
        /// Level 0: too little is known about the peer.
        Unverified "unverified",
        /// Level 1: the peer's identity is verified, or it has some history.
        Verified "verified",
        /// Level 2: the peer has a good history.
        Established "established",
        /// Level 3: the peer has a long and good history.
        Trusted "trusted",
        /// Level 4: the peer has a long history without faults.
        Premium "premium",
    }
}

impl TrustLevel {
    /// Returns the number of the level, from 0 to 4.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns the level of a score. `boundaries` are the lowest scores of levels 1 to 4, in ascending order.
    pub(super) fn of(score: f64, boundaries: &[f64; 4]) -> Self {
        let reached = boundaries.iter().filter(|boundary| score >= **boundary).count();
        Self::ALL[reached.min(Self::ALL.len() - 1)]
    }
}
