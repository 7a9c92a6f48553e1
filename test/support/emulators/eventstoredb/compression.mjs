import { gzipSync } from 'node:zlib';
import { grpc } from './protocol.mjs';

/** A message begins with one byte, which tells whether it is compressed, and four with its length. */
const PREFIX_BYTES = 5;
/** A method of grpc-js that its types do not name. */
const SET_UP_HANDLERS = '_setupHandlers';

/** Compresses each message for clients that accept gzip, as KurrentDB does. Servers of grpc-js never compress. */
export class CompressingServer extends grpc.Server {
  [SET_UP_HANDLERS](http2Server, interceptors) {
    http2Server.on('stream', (stream, headers) => {
      const accepted = String(headers['grpc-accept-encoding'] ?? '').split(',');
      if (accepted.includes('gzip')) compressMessages(stream);
    });
    super[SET_UP_HANDLERS](http2Server, interceptors);
  }
}

/** @param {import('node:http2').ServerHttp2Stream} stream */
function compressMessages(stream) {
  const respond = stream.respond.bind(stream);
  const write = stream.write.bind(stream);
  stream.respond = (headers, options) => respond({ ...headers, 'grpc-encoding': 'gzip' }, options);
  stream.write = (message, ...done) => write(compress(message), ...done);
}

/** @param {Buffer} message with its prefix */
function compress(message) {
  const body = gzipSync(message.subarray(PREFIX_BYTES));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(1);
  prefix.writeUInt32BE(body.length, 1);
  return Buffer.concat([prefix, body]);
}
