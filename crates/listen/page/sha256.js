// SHA-256 (FIPS 180-4). The browser's own implementation is only available over https and on the same machine.

const ROUND_CONSTANTS = firstPrimes(64).map((prime) => fractionBits(Math.cbrt(prime)));
const INITIAL_HASH = firstPrimes(8).map((prime) => fractionBits(Math.sqrt(prime)));

/** Returns the SHA-256 hash of a text in UTF-8, as lower-case hexadecimal digits. */
export function sha256(text) {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setUint32(padded.length - 4, bytes.length * 8);
  const hash = [...INITIAL_HASH];
  for (let at = 0; at < padded.length; at += 64) addBlock(hash, new DataView(padded.buffer, at, 64));
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function addBlock(hash, block) {
  const words = Array.from({ length: 64 }, (_, index) => (index < 16 ? block.getInt32(4 * index) : 0));
  for (let index = 16; index < 64; index += 1) {
    const [first, second] = [words[index - 15], words[index - 2]];
    const sigma0 = rotate(first, 7) ^ rotate(first, 18) ^ (first >>> 3);
    const sigma1 = rotate(second, 17) ^ rotate(second, 19) ^ (second >>> 10);
    words[index] = (words[index - 16] + sigma0 + words[index - 7] + sigma1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let index = 0; index < 64; index += 1) {
    const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const first = (h + sum1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[index] + words[index]) | 0;
    const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const second = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => (hash[index] = (hash[index] + word) | 0));
}

function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

/** Returns the first 32 bits of the fraction of a number. */
function fractionBits(number) {
  return ((number % 1) * 2 ** 32) | 0;
}

function firstPrimes(count) {
  const primes = [];
  for (let number = 2; primes.length < count; number += 1) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  }
  return primes;
}
