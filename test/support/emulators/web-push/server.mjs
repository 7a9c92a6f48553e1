import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  hkdfSync,
  randomBytes,
  verify,
} from 'node:crypto';
import http from 'node:http';

const MOST_BYTES = 4096;
const MOST_TOKEN_SECONDS = 24 * 60 * 60;

/** A rejection, with the status of push services. */
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * A push service together with the browsers that subscribe at it, by the rules of README.md. What arrives is decrypted
 * with the key of the browser, which the sender has never seen.
 */
export async function startPushService() {
  const subscriptions = new Map();
  const rejections = [];
  let origin = '';
  let override;
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const reply = override?.();
      if (reply) {
        response.writeHead(reply.status, reply.headers).end();
        return;
      }
      try {
        const browser = receive(subscriptions, request, Buffer.concat(chunks), origin);
        response.writeHead(201, { location: `${origin}/message/${browser.messages.length}` }).end();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        rejections.push({ status: error.status, why: error.message });
        response.writeHead(error.status, { 'content-type': 'text/plain' }).end(error.message);
      }
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  return {
    origin,
    /** Every rejection so far, in order. */
    rejections,
    /** Subscribes like PushManager.subscribe. @param applicationServerKey base64url */
    subscribe(applicationServerKey) {
      const ecdh = createECDH('prime256v1');
      const publicKey = ecdh.generateKeys();
      const auth = randomBytes(16);
      const id = randomBytes(16).toString('base64url');
      const browser = { applicationServerKey, ecdh, publicKey, auth, messages: [], ended: false };
      subscriptions.set(id, browser);
      return {
        subscription: {
          endpoint: `${origin}/push/${id}`,
          expirationTime: null,
          keys: {
            p256dh: publicKey.toString('base64url'),
            auth: auth.toString('base64url'),
          },
        },
        /** The messages that the service worker received, in order: {text, type, ttl, topic, urgency}. */
        messages: browser.messages,
        /** The person has taken the permission back. */
        end() {
          browser.ended = true;
        },
      };
    },
    /** Overrides the responses while the function returns one. */
    respondWith(reply) {
      override = reply;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function receive(subscriptions, { method, url, headers }, body, origin) {
  if (method !== 'POST') throw new Refused(405, 'only POST');
  const [, id] = /^\/push\/([\w-]+)$/.exec(url) ?? [];
  const browser = subscriptions.get(id);
  if (!browser) throw new Refused(404, 'no such subscription');
  if (browser.ended) throw new Refused(410, 'the subscription has ended');
  checkAuthorization(headers.authorization, browser, origin);
  const { ttl, topic, urgency, 'content-type': type } = headers;
  if (!/^\d+$/.test(ttl ?? '')) throw new Refused(400, 'TTL must be a number of seconds');
  if (topic !== undefined && !/^[\w-]{1,32}$/.test(topic)) {
    throw new Refused(400, 'Topic must be at most 32 characters of base64url');
  }
  if (urgency !== undefined && !/^(very-low|low|normal|high)$/.test(urgency)) {
    throw new Refused(400, 'Urgency must be very-low, low, normal or high');
  }
  if (body.length > MOST_BYTES) throw new Refused(413, `more than ${MOST_BYTES} bytes`);
  if (headers['content-encoding'] !== 'aes128gcm') {
    throw new Refused(415, 'Content-Encoding must be aes128gcm');
  }
  const text = decrypted(body, browser);
  browser.messages.push({ text, type, ttl: Number(ttl), topic, urgency });
  return browser;
}

/** RFC 8292. */
function checkAuthorization(header, browser, origin) {
  const [, head, claims, signature, k] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), ?k=([\w-]+)$/.exec(header ?? '') ?? [];
  if (head === undefined) throw new Refused(401, 'Authorization must be vapid t=…, k=…');
  if (k !== browser.applicationServerKey) {
    throw new Refused(403, 'not the key that the browser has subscribed with');
  }
  const { alg } = parseJsonPart(head);
  if (alg !== 'ES256') throw new Refused(403, 'alg must be ES256');
  const point = Buffer.from(k, 'base64url');
  const key = createPublicKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
    },
  });
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  if (!isSigned) throw new Refused(403, 'the signature is wrong');
  const { aud, exp, sub } = parseJsonPart(claims);
  const now = Date.now() / 1000;
  if (aud !== origin) throw new Refused(403, 'aud must be the origin of the push service');
  if (!(exp > now)) throw new Refused(403, 'exp has passed');
  if (exp > now + MOST_TOKEN_SECONDS) throw new Refused(403, 'exp is more than 24 hours ahead');
  if (!/^(https?:|mailto:)/.test(sub ?? '')) throw new Refused(403, 'sub must be a URL or mailto:');
}

function parseJsonPart(part) {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString());
  } catch {
    throw new Refused(403, 'the token is not JSON');
  }
}

/** As the browser does: RFC 8188 and RFC 8291, one record. */
function decrypted(body, { ecdh, publicKey, auth }) {
  const keyBytes = body.length > 21 ? body.readUInt8(20) : 0;
  const text = body.subarray(21 + keyBytes);
  if (keyBytes !== 65 || text.length < 18) throw new Refused(400, 'the head of the body is wrong');
  if (body.readUInt32BE(16) < text.length) throw new Refused(400, 'more than one record');
  const salt = body.subarray(0, 16);
  const sender = body.subarray(21, 21 + keyBytes);
  const derive = (key, saltOf, info, bytes) =>
    Buffer.from(hkdfSync('sha256', key, saltOf, info, bytes));
  try {
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), publicKey, sender]);
    const secret = derive(ecdh.computeSecret(sender), auth, info, 32);
    const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
    const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12);
    const decipher = createDecipheriv('aes-128-gcm', key, nonce);
    decipher.setAuthTag(text.subarray(-16));
    const plain = Buffer.concat([decipher.update(text.subarray(0, -16)), decipher.final()]);
    const end = plain.lastIndexOf(2);
    if (end < 0 || plain.subarray(end + 1).some((byte) => byte !== 0)) {
      throw new Error('the last record must end with the byte 2');
    }
    return plain.subarray(0, end).toString();
  } catch (error) {
    throw new Refused(400, `the browser cannot decrypt it: ${error.message}`);
  }
}
