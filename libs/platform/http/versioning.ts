import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { CatalogueError } from '#platform/kernel/errors.js';

export const VERSION_POLICY = '/docs/versioning';

export const SIGNALLING =
  'A version that is being retired sends Deprecation, Sunset and a Link with rel="deprecation" on every response.';

type Versions = Pick<PlatformConfig, 'v1' | 'publicUrl'>;

export type VersioningJson = {
  current: 'v1';
  supported: string[];
  deprecated: string[];
  policy_url: string;
  signalling: string;
  deprecation_date?: string;
  sunset_date?: string;
};

export class VersionSunsetError extends CatalogueError {
  constructor(readonly versioning: VersioningJson) {
    super('version_sunset');
  }
}

export function isRetired({ v1: { sunsetAt } }: Versions, now: Date): boolean {
  return sunsetAt !== null && now >= sunsetAt;
}

/**
 * Renders the headers of every response of a version that is being retired (VER-02 to VER-04): Deprecation as RFC
 * 9745 writes it, which may lie ahead, and Sunset as RFC 8594 does.
 */
export function renderRetirementHeaders({ v1: { deprecatedAt, sunsetAt }, publicUrl }: Versions): {
  deprecation?: string;
  sunset?: string;
  link?: string;
} {
  if (deprecatedAt === null) return {};
  return {
    deprecation: `@${Math.floor(deprecatedAt.getTime() / 1000)}`,
    ...(sunsetAt && { sunset: sunsetAt.toUTCString() }),
    link: `<${publicUrl}${VERSION_POLICY}>; rel="deprecation"; type="text/html"`,
  };
}

/**
 * Renders the version's state. An announced deprecation shows as its date; the version counts as deprecated from then
 * on.
 */
export function toVersioningJson(versions: Versions, now: Date): VersioningJson {
  const { deprecatedAt, sunsetAt } = versions.v1;
  return {
    current: 'v1',
    supported: isRetired(versions, now) ? [] : ['v1'],
    deprecated: deprecatedAt !== null && now >= deprecatedAt ? ['v1'] : [],
    policy_url: `${versions.publicUrl}${VERSION_POLICY}`,
    signalling: SIGNALLING,
    ...(deprecatedAt && { deprecation_date: deprecatedAt.toISOString() }),
    ...(sunsetAt && { sunset_date: sunsetAt.toISOString() }),
  };
}
