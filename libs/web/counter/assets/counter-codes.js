/** A card that stays in view, or comes back within this time, is the same scan. */
const SAME_SCAN_MS = 3000;
const CODE = /^[0-9A-Z]{8}$/;

/** Reads the codes of cards: typed, from a keyboard scanner, and from the camera. */
globalThis.CounterCodes = class {
  /**
   * @param on `code` gets the code of a card; `isBusy` tells whether the camera is to wait; `other` and `nothing` tell that
   *   it sees no card but another barcode, or none for a while
   */
  constructor({ texts }, on) {
    Object.assign(this, { texts, on });
    for (const [name, id] of [
      ['form', 'typed'],
      ['field', 'code'],
      ['error', 'code-error'],
    ]) {
      this[name] = document.getElementById(id);
    }
    this.lastSeen = { code: '', at: 0 };
    this.keys = '';
    this.keyAt = 0;
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.read(this.field.value);
    });
    this.field.addEventListener('input', () => this.showError(''));
    addEventListener('keydown', (event) => this.readKey(event));
  }

  /** Takes what was typed, by a person or a scanner. */
  read(text) {
    const code = toCode(text).replaceAll(/[\s\p{Pd}]/gu, '');
    this.showError(CODE.test(code) ? '' : this.texts.codeWrong);
    if (CODE.test(code)) return this.on.code(code);
    this.field.value = text;
    this.field.select();
  }

  showError(text) {
    this.error.textContent = text;
    this.field.setAttribute('aria-invalid', String(text !== ''));
  }

  readKey(event) {
    // A scanner types into the field of the code as well, and its Enter sends the form.
    if (event.target.closest('input')) return;
    if (event.timeStamp - this.keyAt > 500) this.keys = '';
    this.keyAt = event.timeStamp;
    if (event.key === 'Enter' && this.keys.length >= 8) {
      event.preventDefault();
      this.read(this.keys);
      this.keys = '';
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.keys += event.key;
    }
  }

  /** Reads the first card in view. @param barcodes the texts of all that are, such as that of a bottle beside the card */
  see(barcodes) {
    const now = performance.now();
    if (barcodes.length === 0) {
      if (now - this.lastSeen.at > SAME_SCAN_MS) this.on.nothing();
      return;
    }
    const cards = barcodes.map(toCode).filter((code) => CODE.test(code));
    const values = cards.length > 0 ? cards : barcodes;
    const { code: last, at } = this.lastSeen;
    const isSame = values.includes(last) && now - at < SAME_SCAN_MS;
    this.lastSeen = { code: isSame ? last : values[0], at: now };
    if (isSame) return;
    if (this.on.isBusy()) {
      this.lastSeen = { code: '', at: 0 };
      return;
    }
    if (cards.length === 0) return this.on.other();
    this.showError('');
    this.on.code(cards[0]);
  }
};

const toCode = (text) => text.normalize('NFKC').trim().toUpperCase();
