import type { PassContent } from '#passes/pass-content.js';

/** Public addresses of the images of a pass. What an address shows never changes. */
export abstract class PassImages {
  /** @returns the programme's logo, and the wide image with the stamps */
  abstract addressesOf(content: PassContent): Promise<{ logo: string; hero: string }>;
}
