import { Module } from '@nestjs/common';
import { posterHandlers } from './poster.commands.js';
import { PosterFontsModule } from './poster-fonts.module.js';
import { PostersController } from './posters.controller.js';
import { PostersService } from './posters.service.js';

@Module({
  imports: [PosterFontsModule],
  controllers: [PostersController],
  providers: [PostersService, ...posterHandlers],
  exports: [PosterFontsModule, PostersService],
})
export class PostersModule {}
