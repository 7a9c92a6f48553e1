import { Module } from '@nestjs/common';
import { adminTokenHandlers } from './admin-token.commands.js';
import { AdminTokens } from './admin-tokens.service.js';

/** Creates, lists and finds the tokens of the admin API, with or without the API itself. */
@Module({ providers: [AdminTokens, ...adminTokenHandlers], exports: [AdminTokens] })
export class AdminTokensModule {}
