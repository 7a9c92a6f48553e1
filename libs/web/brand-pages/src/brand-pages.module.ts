import { Module } from '@nestjs/common';
import { CardsModule } from '#cards/cards.module.js';
import { PassesModule } from '#passes/passes.module.js';
import { BrandPagesController } from './brand-pages.controller.js';

/** Serves the page of a store's logo, colours and contact details in the console. */
@Module({ imports: [CardsModule, PassesModule], controllers: [BrandPagesController] })
export class BrandPagesModule {}
