// Written by `sayso setup opencode`. Remove it with `sayso setup opencode --remove`.
const COMMAND = ["sayso", "hook", "opencode"];

export const Sayso = async () => ({});
