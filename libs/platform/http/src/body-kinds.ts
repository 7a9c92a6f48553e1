import type { FastifyRequest } from 'fastify';
import { getRouteConfig, setRouteConfig } from './route-config.js';

/** A kind of body besides JSON, which a route has to declare. */
type BodyKind = 'form' | 'upload' | 'picture' | 'file';

/** @property ignoresOthers whether a body of another kind counts as none, instead of being refused */
export type BodyConfig = { body?: BodyKind; bodyLimit?: number; ignoresOthers?: boolean };

/** The media type of any bytes, which clients from generators send: the bytes tell what they are. */
export const UNNAMED = 'application/octet-stream';

/** Unregistered name that some programs use for a JPEG. */
export const MISNAMED_JPEG = 'image/jpg';

const kinds = new Map<string, BodyKind>();

/** Declares media types of a kind of body. */
export function declareMediaTypes(kind: BodyKind, types: Iterable<string>): void {
  for (const type of types) kinds.set(type, kind);
}

/**
 * Declares that the body of a method is of this kind instead of JSON.
 * @param bodyLimit in bytes, where it differs from the default
 */
export function TakesBody(kind: BodyKind, bodyLimit?: number): MethodDecorator {
  const config: BodyConfig = { body: kind, ...(bodyLimit !== undefined && { bodyLimit }) };
  return setRouteConfig(config);
}

/**
 * Declares that the body of a method is a form, and that whatever else comes is ignored: for programs whose request
 * says everything by its address.
 */
export function TakesFormOrAnything(): MethodDecorator {
  const config: BodyConfig = { body: 'form', ignoresOthers: true };
  return setRouteConfig(config);
}

/** Tells whether the route ignores bodies that it does not expect. */
export function ignoresOtherBodies(request: FastifyRequest): boolean {
  return getRouteConfig<BodyConfig>(request).ignoresOthers === true;
}

/** Returns the kind of body that the route takes; undefined: JSON. */
export function getBodyKind(request: FastifyRequest): BodyKind | undefined {
  return getRouteConfig<BodyConfig>(request).body;
}

/** Tells whether the body is of the kind that the route takes. Of other types, which no parser knows, Fastify decides. */
export function isExpectedBody(request: FastifyRequest): boolean {
  const kind = getBodyKind(request);
  const mediaType = getMediaType(request);
  if (mediaType === UNNAMED) return kind === 'picture' || kind === 'file';
  return kind === (mediaType === undefined ? undefined : kinds.get(mediaType));
}

/** Returns the media type of the body, without parameters. */
export function getMediaType({ headers }: FastifyRequest): string | undefined {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return mediaType === MISNAMED_JPEG ? 'image/jpeg' : mediaType;
}
