import { Module } from '@nestjs/common';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { McpEndpoint } from './mcp-endpoint.service.js';

/** Serves assistants, in the api. */
@Module({ imports: [CardImagesModule], providers: [McpEndpoint] })
export class McpModule {}
