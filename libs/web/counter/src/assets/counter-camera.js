/**
 * Reads barcodes from the camera: with the browser's own reader where there is one, otherwise with zxing as WebAssembly,
 * which is loaded only then.
 */
globalThis.CounterCamera = class {
  /**
   * @param paths of the decoder
   * @param onCode gets the text of each barcode that is in view, several times a second
   */
  constructor(video, paths, onCode) {
    this.video = video;
    this.paths = paths;
    this.onCode = onCode;
    this.stream = null;
    this.isReading = false;
  }

  /** Asks for the camera and begins. @throws DOMException when there is none, or it is not allowed */
  async start() {
    if (!navigator.mediaDevices) throw new DOMException('no camera', 'NotFoundError');
    this.stream = await navigator.mediaDevices.getUserMedia({
      audio: false,
      video: {
        facingMode: 'environment',
        width: { ideal: 1280 },
        height: { ideal: 720 },
      },
    });
    this.video.srcObject = this.stream;
    await this.video.play();
    this.read ??= await this.createReader();
    if (!this.isReading) void this.readOn();
  }

  /** Gives the camera back, so that its light goes out while nobody looks at the page. */
  stop() {
    for (const track of this.stream ? this.stream.getTracks() : []) track.stop();
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

  async readOn() {
    this.isReading = true;
    while (this.stream) {
      const startedAt = performance.now();
      try {
        const text = this.video.readyState >= 2 ? await this.read() : '';
        this.onCode(text);
      } catch (error) {
        // A frame that cannot be read, such as the last one of a camera that was unplugged: the next one may be.
        console.debug(error);
      }
      const pauseMs = Math.max(30, 120 - (performance.now() - startedAt));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    this.isReading = false;
  }

  async createReader() {
    const formats = ['qr_code', 'aztec', 'pdf417', 'code_128'];
    if ('BarcodeDetector' in window) {
      const supported = await BarcodeDetector.getSupportedFormats();
      if (supported.includes('qr_code')) {
        const detector = new BarcodeDetector({
          formats: formats.filter((format) => supported.includes(format)),
        });
        return async () => {
          const [barcode] = await detector.detect(this.video);
          return barcode ? barcode.rawValue : '';
        };
      }
    }
    await loadScript(this.paths.script);
    const { wasm } = this.paths;
    ZXingWASM.prepareZXingModule({
      overrides: { locateFile: (file) => (file.endsWith('.wasm') ? wasm : file) },
    });
    const canvas = document.createElement('canvas');
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const options = {
      formats: ['QRCode', 'Aztec', 'PDF417', 'Code128'],
      maxNumberOfSymbols: 1,
      tryHarder: true,
    };
    return async () => {
      const { videoWidth, videoHeight } = this.video;
      const scale = Math.min(1, 800 / Math.max(videoWidth, videoHeight));
      canvas.width = Math.round(videoWidth * scale);
      canvas.height = Math.round(videoHeight * scale);
      context.drawImage(this.video, 0, 0, canvas.width, canvas.height);
      const image = context.getImageData(0, 0, canvas.width, canvas.height);
      const [barcode] = await ZXingWASM.readBarcodes(image, options);
      return barcode ? barcode.text : '';
    };
  }
};

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
