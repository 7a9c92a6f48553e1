/** So many frames in a row that the browser's own reader cannot read mean that it reads none. */
const MAX_FAILURES = 5;
/** How long the reader of the browser may take to say anything. */
const READER_MS = 3000;
const LOAD_MS = 20000;
const FORMATS = ['qr_code', 'aztec', 'pdf417', 'code_128'];

/**
 * Reads barcodes from the camera: with the browser's own reader where there is one that works, otherwise with zxing as
 * WebAssembly, which is loaded only then.
 */
globalThis.CounterCamera = class {
  /**
   * @param paths of the decoder
   * @param on `codes` gets the texts of the barcodes in view, several times a second; `state` gets why the camera is of no
   *   use (`lost`, `failed`), or `on` when it is again; `decoder` tells that the own decoder is in use
   */
  constructor(video, paths, on) {
    this.video = video;
    this.paths = paths;
    this.on = on;
    this.stream = null;
    /** Counts the starts and stops: what belongs to an earlier one ends. */
    this.run = 0;
  }

  /**
   * Asks for the camera and begins.
   * @returns false: another start or stop came meanwhile
   * @throws DOMException when there is none, or it is not allowed
   */
  async start() {
    this.stop();
    const { run } = this;
    if (!navigator.mediaDevices) throw new DOMException('no camera', 'NotFoundError');
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: false,
      video: {
        facingMode: 'environment',
        width: { ideal: 1280 },
        height: { ideal: 720 },
      },
    });
    if (run !== this.run) {
      stopTracks(stream);
      return false;
    }
    this.stream = stream;
    this.video.srcObject = stream;
    try {
      await within(LOAD_MS, this.video.play());
      this.read ??= await this.createReader();
    } catch (error) {
      if (run !== this.run) return false;
      // Not that of the permission, which may have the same name.
      throw new Error('the picture or the reader cannot be started', { cause: error });
    }
    if (run !== this.run) return false;
    this.follow(run);
    void this.readOn(run);
    return true;
  }

  /** Gives the camera back, so that its light goes out while nobody looks at the page. */
  stop() {
    this.run++;
    stopTracks(this.stream);
    this.stream = null;
    this.video.srcObject = null;
  }

  get track() {
    return this.stream ? this.stream.getVideoTracks()[0] : undefined;
  }

  get hasLight() {
    const { track } = this;
    return Boolean(track && track.getCapabilities && track.getCapabilities().torch);
  }

  async setLight(isOn) {
    await this.track.applyConstraints({ advanced: [{ torch: isOn }] });
  }

  /** Tells when the camera stops: it is unplugged, or another app takes it, for a while or for good. */
  follow(run) {
    const { track } = this;
    const tell = (state) => () => run === this.run && this.on.state(state);
    track.addEventListener('ended', () => this.end(run, 'lost'));
    track.addEventListener('mute', tell('lost'));
    track.addEventListener('unmute', tell('on'));
    if (track.muted) this.on.state('lost');
  }

  end(run, state) {
    if (run !== this.run) return;
    this.stop();
    this.on.state(state);
  }

  async readOn(run) {
    let failures = 0;
    while (run === this.run) {
      const startedAt = performance.now();
      // Not every way to end has its event.
      if (this.track.readyState === 'ended') return this.end(run, 'lost');
      try {
        // The decoder compiles its module first.
        const ms = this.read === this.decoder ? LOAD_MS : READER_MS;
        const texts = this.video.readyState >= 2 ? await within(ms, this.read()) : [];
        failures = 0;
        if (run === this.run) this.on.codes(texts);
      } catch (error) {
        // A frame that cannot be read, such as the last one of a camera that was unplugged: the next one may be.
        console.debug(error);
        failures++;
      }
      if (failures >= MAX_FAILURES) {
        if (!(await this.changeReader())) return this.end(run, 'failed');
        failures = 0;
      }
      const pauseMs = Math.max(30, 120 - (performance.now() - startedAt));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** Reads with the own decoder from now on. @returns false: it reads nothing either */
  async changeReader() {
    if (this.read === this.decoder) {
      // The next start may load it again.
      this.read = this.decoder = undefined;
      return false;
    }
    try {
      this.read = await this.loadDecoder();
      return true;
    } catch (error) {
      console.debug(error);
      return false;
    }
  }

  /** Creates the browser's own reader if it knows QR codes, and otherwise loads the decoder. */
  async createReader() {
    if (!('BarcodeDetector' in window)) return this.loadDecoder();
    try {
      const supported = await within(READER_MS, BarcodeDetector.getSupportedFormats());
      if (!supported.includes('qr_code')) return await this.loadDecoder();
      const detector = new BarcodeDetector({
        formats: FORMATS.filter((format) => supported.includes(format)),
      });
      return async () => (await detector.detect(this.video)).map(({ rawValue }) => rawValue);
    } catch (error) {
      console.debug(error);
      return this.loadDecoder();
    }
  }

  async loadDecoder() {
    this.decoder ??= await this.createDecoder();
    this.on.decoder();
    return this.decoder;
  }

  async createDecoder() {
    if (!('ZXingWASM' in globalThis)) await within(LOAD_MS, loadScript(this.paths.script));
    const { wasm } = this.paths;
    ZXingWASM.prepareZXingModule({
      overrides: { locateFile: (file) => (file.endsWith('.wasm') ? wasm : file) },
    });
    const canvas = document.createElement('canvas');
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const options = {
      formats: ['QRCode', 'Aztec', 'PDF417', 'Code128'],
      maxNumberOfSymbols: 8,
      tryHarder: true,
    };
    return async () => {
      const { videoWidth, videoHeight } = this.video;
      const scale = Math.min(1, 800 / Math.max(videoWidth, videoHeight));
      canvas.width = Math.round(videoWidth * scale);
      canvas.height = Math.round(videoHeight * scale);
      context.drawImage(this.video, 0, 0, canvas.width, canvas.height);
      const image = context.getImageData(0, 0, canvas.width, canvas.height);
      return (await ZXingWASM.readBarcodes(image, options)).map(({ text }) => text);
    };
  }
};

function stopTracks(stream) {
  for (const track of stream ? stream.getTracks() : []) track.stop();
}

/** Waits no longer than so many milliseconds. */
async function within(ms, promise) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Loads a script with the nonce of this one, without which the policy of the page would refuse it. */
const ownNonce = document.currentScript.nonce;
function loadScript(path) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = path;
    script.nonce = ownNonce;
    script.addEventListener('load', resolve);
    script.addEventListener('error', () => reject(new Error('the decoder cannot be loaded')));
    document.head.append(script);
  });
}
