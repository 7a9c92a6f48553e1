import { Controller, Get, Header } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';

/** Tells anybody where to report a vulnerability of this installation (RFC 9116). */
@Controller('.well-known/security.txt')
export class SecurityTxtController {
  constructor(private readonly config: Config) {}

  /** Serves the file. @throws NotFoundError without SECURITY_CONTACT */
  @Get()
  @Header('content-type', 'text/plain; charset=utf-8')
  @Header('cache-control', 'public, max-age=3600')
  show(): string {
    const { securityContact, publicUrl } = this.config;
    if (securityContact === null) throw new NotFoundError('Security contact');
    return renderSecurityTxt(securityContact, publicUrl, getNow());
  }
}

const DAY_MS = 86_400_000;
/** RFC 9116 recommends less than a year. Each request gets a new date, so only copies expire. */
const VALID_MS = 90 * DAY_MS;

/**
 * Renders security.txt (RFC 9116), which says where to report a vulnerability.
 * @param contact a URL
 */
export function renderSecurityTxt(contact: string, publicUrl: string, now: Date): string {
  return [
    `Contact: ${contact}`,
    `Expires: ${new Date(now.getTime() + VALID_MS).toISOString()}`,
    'Preferred-Languages: en',
    `Canonical: ${publicUrl}/.well-known/security.txt`,
    '',
  ].join('\n');
}
