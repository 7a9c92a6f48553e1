import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { GoogleCallbacks } from './callbacks.service.js';

/** Called by Google without a token: its signature says who it is. */
@Controller('wallet/google/callback')
export class GoogleCallbackController {
  constructor(private readonly callbacks: GoogleCallbacks) {}

  @Post()
  @HttpCode(200)
  async receive(@Body() body: unknown): Promise<void> {
    await this.callbacks.receive(body, new Date());
  }
}
