import { Controller, Get, Header } from '@nestjs/common';
import { CARD_SCRIPT } from './card-script.js';

/** Serves the script of every web card. */
@Controller(CARD_SCRIPT.folder)
export class CardScriptController {
  @Get(CARD_SCRIPT.file)
  @Header('content-type', 'text/javascript; charset=utf-8')
  @Header('cache-control', 'public, max-age=31536000, immutable')
  script(): string {
    return CARD_SCRIPT.text;
  }
}
