import { CompressionFilter } from '@grpc/grpc-js/build/src/compression-filter.js';

const { sendMetadata } = CompressionFilter.prototype;

/**
 * Makes gRPC clients of this process accept uncompressed responses only. KurrentDB compresses every message at the
 * highest level for clients that accept gzip. grpc-js always says that it does, after every interceptor, so only its
 * own filter can be changed. On KurrentDB 26.0.3 this doubles what 16 and 64 callers can commit (0.32 and 0.38 to 0.69
 * and 0.95 times a CRUD service), and reads of the log go from 5,000 to between 27,000 and 47,000 events a second.
 */
export function acceptIdentityOnly(): void {
  CompressionFilter.prototype.sendMetadata = async function (metadata) {
    const headers = await sendMetadata.call(this, metadata);
    headers.set('grpc-accept-encoding', 'identity');
    return headers;
  };
}
