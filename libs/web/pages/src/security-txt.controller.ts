import { Controller, Get, Header } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#kernel/errors.js';
import { renderSecurityTxt } from './security-txt.js';

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
    return renderSecurityTxt(securityContact, publicUrl, new Date());
  }
}
