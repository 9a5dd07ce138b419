// Text that scripts write, with characters that reorder or hide text as their numbers: see webapp/core/visible.py.
const visible = (() => {
  "use strict";
  const HIDDEN = /[\u{0}-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff9}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
  const SYMBOL = /^(?![\u{0}-\u{7f}])[\p{So}\p{Sk}\p{Sm}]$/u;
  const [JOINER, EMOJI_STYLE, KEYCAP] = ["\u{200d}", "\u{fe0f}", "\u{20e3}"];

  const isSymbol = (character) => character !== undefined && SYMBOL.test(character);

  // Part of an emoji: its style, or between two of them.
  function belongs(characters, at) {
    const before = characters[characters[at - 1] === EMOJI_STYLE ? at - 2 : at - 1];
    const after = characters[at + 1];
    if (characters[at] === EMOJI_STYLE) return characters[at - 1] !== EMOJI_STYLE && (isSymbol(before) || after === KEYCAP);
    return characters[at] === JOINER && isSymbol(before) && isSymbol(after);
  }

  return (text) => [...text].map((character, at, characters) => {
    if (!HIDDEN.test(character) || belongs(characters, at)) return character;
    return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  }).join("");
})();
