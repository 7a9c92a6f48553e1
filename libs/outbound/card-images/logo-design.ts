/** Raise it when the drawing changes: the hash under which images are cached for ever covers it. */
const DRAWING_VERSION = 1;

/** Everything that the images of a logo show. */
export type LogoDesign = {
  logoDrawing: number;
  /** SHA-256 of the uploaded picture, in hex. */
  logo: string;
  /** The colour that it is drawn on, as `#RRGGBB`. */
  ground: string;
};

/**
 * Sizes in pixels. A `wide` one shows the logo in its own proportions, at most so large, and transparent around it:
 * Apple's logo has 160 by 50 points. A `square` one has a ground: Apple's icon has 29 points, an app 192 and 512 pixels.
 * A `banner` has the ground too, as wide as a strip of the double resolution, with the logo in its middle.
 * Launchers and Google cut a circle out of the others, so that the logo lies within.
 */
export const LOGO_SIZES = {
  'wide@1x': { kind: 'wide', width: 160, height: 50 },
  'wide@2x': { kind: 'wide', width: 320, height: 100 },
  'wide@3x': { kind: 'wide', width: 480, height: 150 },
  banner: { kind: 'banner', width: 750, height: 156, inner: { width: 480, height: 100 } },
  poster: { kind: 'wide', width: 1200, height: 400 },
  'icon@1x': { kind: 'square', side: 29 },
  'icon@2x': { kind: 'square', side: 58 },
  'icon@3x': { kind: 'square', side: 87 },
  'app@192': { kind: 'round', side: 192, safe: 0.8 },
  'app@512': { kind: 'round', side: 512, safe: 0.8 },
  program: { kind: 'round', side: 660, safe: 0.7 },
} as const;

export type LogoSize = keyof typeof LOGO_SIZES;

export function createLogoDesign(logo: string, ground: string): LogoDesign {
  return { logoDrawing: DRAWING_VERSION, logo, ground: ground.toUpperCase() };
}

/**
 * Returns the public URL of a drawn logo. It works once `CardImages` has stored the design.
 * @param publicUrl without a trailing slash
 */
export function toDrawnLogoUrl(publicUrl: string, hash: string, size: LogoSize): string {
  return `${publicUrl}/img/brand/${hash}/${size}.png`;
}
