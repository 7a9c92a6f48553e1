import { Module } from '@nestjs/common';
import { StripImagesModule } from '#outbound/card-images/strip-images.module.js';
import { McpEndpoint } from './mcp-endpoint.service.js';

/** Serves assistants, in the api. */
@Module({ imports: [StripImagesModule], providers: [McpEndpoint] })
export class McpModule {}
