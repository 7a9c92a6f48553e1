import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';

const PROTOCOL = 'ECv2SigningOnly';
const YEAR_MS = 365 * 24 * 3600 * 1000;
const HOUR_MS = 3600 * 1000;

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Root keys, published at the keys' address, which sign intermediate keys, which sign what is called back. */
export class CallbackSigner {
  #root = keyPair();

  /** @param {string} issuerId @param {() => number} now */
  constructor(issuerId, now) {
    this.issuerId = issuerId;
    this.now = now;
  }

  /** From now on another root key is published and signs. */
  rotate() {
    this.#root = keyPair();
  }

  keys() {
    return {
      keys: [
        {
          keyValue: spkiOf(this.#root.publicKey),
          protocolVersion: PROTOCOL,
          keyExpiration: String(this.now() + YEAR_MS),
        },
      ],
    };
  }

  /**
   * @param {{ classId: string, objectId: string, eventType: string, nonce?: string, expTimeMillis?: number }} event
   * @param {{ recipientId?: string, senderId?: string, keyExpiration?: number, rootless?: boolean, protocolVersion?: string }} wrong
   * @returns {string} the body of a callback
   */
  envelope(event, wrong = {}) {
    const { recipientId = this.issuerId, senderId = 'GooglePayPasses' } = wrong;
    const protocolVersion = wrong.protocolVersion ?? PROTOCOL;
    const intermediate = keyPair();
    const signedKey = JSON.stringify({
      keyValue: spkiOf(intermediate.publicKey),
      keyExpiration: String(wrong.keyExpiration ?? this.now() + HOUR_MS),
    });
    const signedMessage = JSON.stringify({
      expTimeMillis: this.now() + HOUR_MS,
      nonce: randomUUID(),
      count: 1,
      ...event,
    });
    const root = wrong.rootless ? keyPair() : this.#root;
    return JSON.stringify({
      signature: signed(intermediate.privateKey, [
        senderId,
        recipientId,
        protocolVersion,
        signedMessage,
      ]),
      intermediateSigningKey: {
        signedKey,
        signatures: [signed(root.privateKey, [senderId, protocolVersion, signedKey])],
      },
      protocolVersion,
      signedMessage,
    });
  }
}

/** Each part is preceded by its length in bytes. @param {string[]} parts */
function signed(privateKey, parts) {
  const bytes = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(Buffer.byteLength(part));
    return [length, Buffer.from(part)];
  });
  return sign('sha256', Buffer.concat(bytes), privateKey).toString('base64');
}

function spkiOf(publicKey) {
  return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
}
